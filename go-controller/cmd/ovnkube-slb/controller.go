// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// fileDescription describes the file of --config-file.
const fileDescription = `--config-file reads the ini file of OVN-Kubernetes. Keys that OVN-Kubernetes has are read from its own sections. All
others are in section [serviceloadbalancers] and have the names of flags; enabled is --enable-service-load-balancers.`

const controllerDescription = `Allocates addresses from IPAddressPools, decides which gateways serve them, and writes the rows of OVN's northbound
database. With interconnect (--nb-address is empty) it publishes plans instead, which ovnkube-slb node --enable-l2
programs. With --leader-elect one of several replicas works, and the others wait.

` + fileDescription + `

Examples:
  ovnkube-slb controller --k8s-kubeconfig ~/.kube/config --nb-address tcp:10.0.0.1:6641 --sb-address tcp:10.0.0.1:6642
  ovnkube-slb controller --leader-elect --nb-address= --sb-address= --cluster-subnets 10.128.0.0/14/23`

func controllerCommand() *cli.Command {
	o := &options{}
	usage := "allocate addresses to Services of type LoadBalancer and have OVN announce them"
	return command("controller", usage, controllerDescription, settings(o), func(ctx *cli.Context) error {
		if err := o.Validate(); err != nil {
			return err
		}
		return runController(ctx.Context, o)
	})
}

// command returns a subcommand with settings, and with --config-file to read them from a file.
func command(name, usage, description string, all []setting, run cli.ActionFunc) *cli.Command {
	var file string
	flags := []cli.Flag{text(&file, flagConfigFile, "", "",
		"ini `FILE` in the format of OVN-Kubernetes; flags and environment variables take precedence")}
	for _, s := range all {
		flags = append(flags, s.flag)
	}
	action := func(ctx *cli.Context) error {
		if ctx.Args().Present() {
			return fmt.Errorf("argument %q: there are only flags", ctx.Args().First())
		}
		if err := applyFile(ctx, file, all); err != nil {
			return err
		}
		return run(ctx)
	}
	return &cli.Command{Name: name, Usage: usage, Description: description, Flags: flags, Action: action}
}

// runController runs the controller until ctx ends or the lease is lost.
func runController(ctx context.Context, o *options) error {
	if err := setLogLevel(o.logLevel); err != nil {
		return err
	}
	config, err := restConfig(&o.common)
	if err != nil {
		return err
	}
	metrics := newRegistry()
	r := &replica{options: o, config: config, metrics: metrics,
		health: leaderelection.NewLeaderHealthzAdaptor(o.stallTimeout)}
	g, ctx := errgroup.WithContext(ctx)
	if err := serveMetrics(ctx, g, &o.common, config, metrics); err != nil {
		return err
	}
	serve(ctx, g, &o.common, probes{alive: r.alive, ready: r.ready})
	g.Go(func() error {
		trim(ctx)
		return nil
	})
	g.Go(func() error { return r.run(ctx) })
	return g.Wait()
}

// protobuf returns a copy of config that uses protobuf, which halves the cost of reading and writing built-in kinds.
func protobuf(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.ContentType = runtime.ContentTypeProtobuf
	out.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return out
}

func restConfig(o *common) (*rest.Config, error) {
	config, err := connection(o)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "ovnkube-slb"
	config.QPS, config.Burst = float32(o.qps), o.burst
	if o.qps <= 0 {
		config.QPS = -1
	}
	return config, nil
}

func connection(o *common) (*rest.Config, error) {
	switch {
	case o.kubeconfig != "":
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: %w", flagKubeconfig, o.kubeconfig, err)
		}
		return config, nil
	case o.apiServer != "":
		return &rest.Config{
			Host:            o.apiServer,
			BearerToken:     o.token,
			BearerTokenFile: o.tokenFile,
			TLSClientConfig: rest.TLSClientConfig{CAFile: o.caCert},
		}, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("neither --%s nor --%s, and no service account: %w", flagKubeconfig, flagAPIServer, err)
	}
	return config, nil
}

func setLogLevel(level int) error {
	if err := printable.SetLog(os.Stderr, level); err != nil {
		return fmt.Errorf("--%s %d: %w", flagLogLevel, level, err)
	}
	return nil
}

func identity(o *options) (string, error) {
	if o.leaseIdentity != "" {
		return o.leaseIdentity, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this holder of the lease: %w", err)
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid()), nil
}
