// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/guard"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	sdnagent "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// nodeOptions are the options of the process that runs on each node.
type nodeOptions struct {
	common
	node, ovsAddress, runDir string
	// sb holds the credentials for the southbound database. The address of the database is read from ovn-controller's
	// configuration.
	sb              slb.Endpoint
	guard, bgp, sdn bool
	sdnHealth       string
}

// nodeSettings binds the flags of subcommand node to o.
func nodeSettings(o *nodeOptions) []setting {
	return slices.Concat(commonSettings(&o.common, "node-"), certificateSettings("sb", &o.sb), []setting{
		{flag: text(&o.node, flagNodeName, "K8S_NODE", "", "`NAME` of this Node; empty for the host name")},
		{toggle(&o.guard, flagEnableGuard, true, "watch the uplinks of L2Domains and ovn-controller"), ownSection,
			flagEnableGuard},
		{toggle(&o.bgp, flagEnableBGP, false, "advertise Services to BGPPeers"), ownSection, flagEnableBGP},
		{toggle(&o.sdn, flagEnableSDN, false, "assign addresses to the node, with OpenShift SDN"), ownSection,
			flagEnableSDN},
		{text(&o.sdnHealth, flagSDNHealth, "", ":9484",
			"`HOST:PORT` to answer the controller's gRPC health checks at; without a host, on all addresses"), ownSection,
			flagSDNHealth},
		{text(&o.ovsAddress, flagOVSAddress, "", "unix:/var/run/openvswitch/db.sock",
			"`ADDRESS` of the node's Open vSwitch database"), ownSection, flagOVSAddress},
		{text(&o.runDir, flagOVNRunDir, "OVN_RUNDIR", "/var/run/ovn", "`DIRECTORY` of ovn-controller's control socket"),
			ownSection, flagOVNRunDir},
	})
}

// Validate returns all problems with the options, each with its flag and value.
func (o *nodeOptions) Validate() error {
	var errs []error
	wrong := noting(&errs)
	o.check(wrong)
	if o.node == "" {
		wrong(flagNodeName, o.node, "is needed")
	}
	if _, port, err := net.SplitHostPort(o.sdnHealth); o.sdn && (err != nil || port == "") {
		wrong(flagSDNHealth, o.sdnHealth, "want HOST:PORT")
	}
	if !o.guard && !o.bgp && !o.sdn {
		wrong(flagEnableBGP, o.bgp, "nothing is left to do: --"+flagEnableGuard+" is off, too")
	}
	if !o.guard {
		return errors.Join(errs...)
	}
	scheme, path, _ := strings.Cut(o.ovsAddress, ":")
	if scheme != "unix" && scheme != "tcp" || path == "" {
		wrong(flagOVSAddress, o.ovsAddress, "want unix:PATH or tcp:HOST:PORT")
	}
	if o.runDir == "" {
		wrong(flagOVNRunDir, o.runDir, "is needed")
	}
	if o.sb != (slb.Endpoint{}) {
		checkCertificates(wrong, "sb", o.sb, "the other two of --sb-client-privkey, --sb-client-cert and --sb-client-cacert")
	}
	return errors.Join(errs...)
}

func nodeCommand() *cli.Command {
	o := &nodeOptions{}
	return command("node", "run on a node: detect faults that OVN does not see, advertise Services by BGP, assign "+
		"addresses with OpenShift SDN",
		nodeSettings(o), func(ctx *cli.Context) error {
			if o.node == "" {
				host, err := os.Hostname()
				if err != nil {
					return fmt.Errorf("name this node: %w", err)
				}
				o.node = strings.ToLower(host)
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return runNode(ctx.Context, o)
		})
}

// module is a part of the process that runs on each node.
type module interface {
	// Run runs the module until ctx ends.
	Run(ctx context.Context) error
	// Healthy returns an error that describes what the module still waits for, nil for nothing.
	Healthy() error
}

// runNode runs all modules until the context ends or one fails.
func runNode(ctx context.Context, o *nodeOptions) error {
	if err := setLogLevel(o.logLevel); err != nil {
		return err
	}
	config, err := restConfig(&o.common)
	if err != nil {
		return err
	}
	metrics := newRegistry()
	modules, err := newModules(o, config, metrics)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	if err := serveMetrics(ctx, g, &o.common, config, metrics); err != nil {
		return err
	}
	serve(ctx, g, &o.common, probes{ready: func() error {
		var errs []error
		for name, m := range modules {
			if err := m.Healthy(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		return errors.Join(errs...)
	}})
	for name, m := range modules {
		g.Go(func() error {
			if err := m.Run(ctx); err != nil {
				return fmt.Errorf("module %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// newModules returns the enabled modules by name.
func newModules(o *nodeOptions, config *rest.Config, metrics prometheus.Registerer) (map[string]module, error) {
	kube, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	modules := map[string]module{}
	if o.guard {
		modules["l2-guard"], err = guard.New(guard.Options{Node: o.node, Kube: kube,
			Switch:      ovn.Endpoint{Address: o.ovsAddress},
			Credentials: ovn.Endpoint(o.sb), RunDir: o.runDir, Registerer: metrics})
		if err != nil {
			return nil, err
		}
	}
	if o.bgp {
		modules["bgp"], err = agent.New(agent.Options{
			Node: o.node, Kube: kube, Config: config, Registerer: metrics,
			Services: convert.Options{DefaultClass: !o.requireClass, DrainTaints: parseKeys(o.drainTaints),
				Mode: world.DefaultMode(o.enabled)},
		})
		if err != nil {
			return nil, err
		}
	}
	if o.sdn {
		modules["sdn"], err = sdnagent.New(sdnagent.Options{Node: o.node, Kube: kube, Health: o.sdnHealth,
			Registerer: metrics})
		if err != nil {
			return nil, err
		}
	}
	return modules, nil
}
