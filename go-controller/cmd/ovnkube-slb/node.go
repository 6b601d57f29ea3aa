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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/guard"
	slbkube "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	sdnagent "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	zoneagent "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// nodeOptions are the options of the process that runs on each node.
type nodeOptions struct {
	common
	node, ovsAddress, runDir string
	// nb and sb are the databases of the node's zone. The guard takes only the credentials from sb, and reads the address
	// from ovn-controller's configuration.
	nb, sb              slb.Endpoint
	clusterSubnets      string
	guard, l2, bgp, sdn bool
	sdnHealth           string
}

// nodeSettings binds the flags of subcommand node to o.
func nodeSettings(o *nodeOptions) []setting {
	return slices.Concat(commonSettings(&o.common, "node-"), certificateSettings("nb", &o.nb),
		certificateSettings("sb", &o.sb), nodeModules(o))
}

// nodeModules binds the flags of the modules to o.
func nodeModules(o *nodeOptions) []setting {
	return slices.Concat(grouped(categoryModules, []setting{
		{flag: text(&o.node, flagNodeName, "K8S_NODE", "", "`NAME` of this Node; empty for the host name")},
		{toggle(&o.guard, flagEnableGuard, true, "watch the uplinks of L2Domains, ovs-vswitchd and ovn-controller"),
			ownSection, flagEnableGuard},
		{toggle(&o.l2, flagEnableL2, false, "program L2Domains into the databases of the node's zone, in a cluster with "+
			"interconnect"), ownSection, flagEnableL2},
		{toggle(&o.bgp, flagEnableBGP, false, "advertise Services to BGPPeers"), ownSection, flagEnableBGP},
		{toggle(&o.sdn, flagEnableSDN, false, "assign addresses to the node, with OpenShift SDN"), ownSection,
			flagEnableSDN},
		{text(&o.sdnHealth, flagSDNHealth, "", ":9484",
			"`HOST:PORT` to answer the controller's gRPC health checks at, for --enable-sdn; without a host, on all addresses"),
			ownSection, flagSDNHealth},
	}...), grouped(categoryOVN, []setting{
		{text(&o.nb.Address, "nb-address", "", "unix:/var/run/ovn/ovnnb_db.sock",
			"`ADDRESS` of the northbound database of the node's zone, for --enable-l2"), "ovnnorth", "address"},
		{text(&o.sb.Address, "sb-address", "", "unix:/var/run/ovn/ovnsb_db.sock",
			"`ADDRESS` of the southbound database of the node's zone, for --enable-l2"), "ovnsouth", "address"},
		{text(&o.clusterSubnets, flagClusterSubnets, "", "",
			"comma-separated `SUBNETS` of pods, the same as the controller's, for --enable-l2: CIDR or CIDR/HOSTPREFIX; empty "+
				"for those of OpenShift's Network"),
			"default", "cluster-subnets"},
		{text(&o.ovsAddress, flagOVSAddress, "", "unix:/var/run/openvswitch/db.sock",
			"`ADDRESS` of the node's Open vSwitch database"), ownSection, flagOVSAddress},
		{text(&o.runDir, flagOVNRunDir, "OVN_RUNDIR", "/var/run/ovn",
			"`DIRECTORY` of the control sockets of ovn-controller and, for --enable-l2, ovn-northd"),
			ownSection, flagOVNRunDir},
	}...))
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
	if !o.guard && !o.l2 && !o.bgp && !o.sdn {
		wrong(flagEnableBGP, o.bgp, "nothing is left to do: --"+flagEnableGuard+" is off, too")
	}
	if o.l2 {
		for db, e := range map[string]slb.Endpoint{"nb": o.nb, "sb": o.sb} {
			if checkEndpoint(wrong, db, e); e.Address == "" {
				wrong(db+"-address", e.Address, "is needed with --"+flagEnableL2)
			}
		}
		if _, err := parseSubnets(o.clusterSubnets); err != nil {
			wrong(flagClusterSubnets, o.clusterSubnets, err.Error())
		}
	}
	if o.runDir == "" && (o.guard || o.l2) {
		wrong(flagOVNRunDir, o.runDir, "is needed")
	}
	if !o.guard {
		return errors.Join(errs...)
	}
	scheme, path, _ := strings.Cut(o.ovsAddress, ":")
	if scheme != "unix" && scheme != "tcp" || path == "" {
		wrong(flagOVSAddress, o.ovsAddress, "want unix:PATH or tcp:HOST:PORT")
	}
	if o.sb != (slb.Endpoint{Address: o.sb.Address}) && !o.l2 {
		checkCertificates(wrong, "sb", o.sb, "the other two of --sb-client-privkey, --sb-client-cert and --sb-client-cacert")
	}
	return errors.Join(errs...)
}

const nodeDescription = `Runs on each node, as what is enabled: the guard (the default) reports a lost uplink, an ovs-vswitchd or
ovn-controller that does not work, and addresses that other hosts have. With interconnect, --enable-l2 programs
L2Domains into the databases of the node. --enable-bgp keeps the sessions with routers. --enable-sdn holds addresses in
clusters with OpenShift SDN.

` + fileDescription + `
Keys of addresses to listen at and of their certificates begin with "node-".

Examples:
  ovnkube-slb node --node-name n1
  ovnkube-slb node --node-name n1 --enable-l2 --enable-bgp --cluster-subnets 10.128.0.0/14/23`

func nodeCommand() *cli.Command {
	o := &nodeOptions{}
	return command("node", "run on a node: detect faults that OVN does not see, advertise Services by BGP, assign "+
		"addresses with OpenShift SDN", nodeDescription, nodeSettings(o), func(ctx *cli.Context) error {
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

// bootIDFile contains a random ID that the kernel generates at each boot (random(4)). Containers have that of their
// node.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// stallTimeout is how long a loop of a module may be stuck before /healthz fails.
const stallTimeout = time.Minute

// module is a part of the process that runs on each node.
type module interface {
	// Run runs the module until ctx ends.
	Run(ctx context.Context) error
	// Healthy returns an error that describes what the module still waits for, nil for nothing.
	Healthy() error
}

// watched is a module whose loops have heartbeats.
type watched interface {
	// Alive returns an error if a loop has been stuck for longer than stall.
	Alive(stall time.Duration) error
}

var (
	_ watched = (*guard.Guard)(nil)
	_ watched = (*agent.Agent)(nil)
	_ watched = (*zoneagent.Agent)(nil)
)

// reportModule writes the reports of the other modules.
type reportModule struct{ *nodelease.Reporter }

func (r reportModule) Run(ctx context.Context) error {
	r.Reporter.Run(ctx)
	return nil
}

func (reportModule) Healthy() error { return nil }

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
	serve(ctx, g, &o.common, probesOf(modules))
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

// probesOf returns the probes of a process with these modules.
func probesOf(modules map[string]module) probes {
	all := func(check func(module) error) func() error {
		return func() error {
			var errs []error
			for name, m := range modules {
				if err := check(m); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
			}
			return errors.Join(errs...)
		}
	}
	return probes{ready: all(module.Healthy), alive: all(func(m module) error {
		if w, is := m.(watched); is {
			return w.Alive(stallTimeout)
		}
		return nil
	})}
}

// notReported returns the annotations of a node's Lease that belong to modules that are not enabled. That of the agent
// with OpenShift SDN is among them where OVN is programmed: the cluster has been migrated.
func notReported(o *nodeOptions) []string {
	var out []string
	if !o.guard {
		out = append(out, v1alpha1.AnnotationFaults, v1alpha1.AnnotationLocalnets, v1alpha1.AnnotationConflicts,
			v1alpha1.AnnotationAnnouncedConflicts, v1alpha1.AnnotationProbed, v1alpha1.AnnotationTunnels)
	}
	if !o.l2 {
		out = append(out, v1alpha1.AnnotationZone)
	}
	if !o.sdn {
		out = append(out, v1alpha1.AnnotationAgent)
	}
	return out
}

// newModules returns the enabled modules by name.
func newModules(o *nodeOptions, config *rest.Config, metrics prometheus.Registerer) (map[string]module, error) {
	kube, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	modules := map[string]module{}
	var report *nodelease.Reporter
	if o.guard || o.l2 {
		report, err = nodelease.New(kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace), kube.CoreV1().Nodes(),
			o.node, "l2-guard", metrics)
		if err != nil {
			return nil, fmt.Errorf("report of node %s: %w", o.node, err)
		}
		report.Clear(notReported(o)...)
		modules["report"] = reportModule{report}
	}
	if o.l2 {
		clients, err := slbkube.NewClients(config)
		if err != nil {
			return nil, fmt.Errorf("client of the API server: %w", err)
		}
		nets, err := parseSubnets(o.clusterSubnets)
		if err != nil {
			return nil, err
		}
		boot, err := os.ReadFile(bootIDFile)
		if err != nil {
			return nil, fmt.Errorf("boot of node %s: %w", o.node, err)
		}
		modules["l2"], err = zoneagent.New(zoneagent.Options{Node: o.node, Boot: strings.TrimSpace(string(boot)), Kube: kube,
			Clients: clients, Report: report, NB: ovn.Endpoint(o.nb), SB: ovn.Endpoint(o.sb), RunDir: o.runDir,
			ClusterSubnets: nets, Registerer: metrics})
		if err != nil {
			return nil, err
		}
	}
	if o.guard {
		modules["l2-guard"], err = guard.New(guard.Options{Node: o.node, Kube: kube, Report: report,
			Switch:      ovn.Endpoint{Address: o.ovsAddress},
			Credentials: ovn.Endpoint(o.sb), RunDir: o.runDir, Registerer: metrics})
		if err != nil {
			return nil, err
		}
	}
	if o.bgp {
		modules["bgp"], err = agent.New(agent.Options{
			Node: o.node, Kube: kube, Config: config, Registerer: metrics,
			Services: convert.Options{DefaultClass: !o.requireClass, Classes: o.loadBalancerClasses(),
				DrainTaints: parseKeys(o.drainTaints), Mode: world.DefaultMode(o.enabled)},
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
