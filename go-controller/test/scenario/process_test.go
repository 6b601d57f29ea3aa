// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/controller"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/fence"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/fabric"
)

// termLength is the length of a leader's term, and renewal how often it is renewed.
const termLength, renewal = 15 * time.Second, 5 * time.Second

// process is a running process of the product.
type process struct {
	name   string
	client *apiserver.Client
	ovn    *fabric.Dataplane // nil without databases
	// health returns what the process waits for.
	health func() error
	// metrics are those of a controller, nil for others.
	metrics *prometheus.Registry
	// passes is the number of full passes that the script has counted.
	passes uint64
	// term is that of a leader, nil without leader election.
	term *fence.Term
	// guard is that of a node, nil for others.
	guard  *guard
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// run runs the parts of a process until it is stopped.
func (p *process) run(ctx context.Context, parts ...func(context.Context)) {
	ctx, p.cancel = context.WithCancel(ctx)
	for _, part := range parts {
		p.done.Go(func() { part(ctx) })
	}
}

func (p *process) stop() {
	p.cancel()
	p.done.Wait()
	if p.term != nil {
		p.term.Close()
	}
}

// kill ends a process without letting it write anything else.
func (p *process) kill() {
	p.client.Cut()
	if p.ovn != nil {
		p.ovn.Cut()
	}
	p.stop()
}

// process returns a running process.
func (c *cluster) process(name string) (*process, error) {
	i := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s does not run", name)
	}
	return c.processes[i], nil
}

// end ends a process.
func (c *cluster) end(name string, how func(*process)) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	how(p)
	c.processes = slices.DeleteFunc(c.processes, func(o *process) bool { return o == p })
	return nil
}

func (c *cluster) stopAll() {
	for _, p := range c.processes {
		p.stop()
	}
	synctest.Wait()
}

// start starts a process: "controller [NAME] [OPTION...]" or "node NODE [OPTION...]".
func (c *cluster) start(args []string) error {
	if len(args) == 0 {
		return errors.New("what is to be started?")
	}
	var p *process
	var err error
	switch args[0] {
	case "controller":
		p, err = c.startController(args[1:])
	case "node":
		p, err = c.startNode(args[1:])
	default:
		return fmt.Errorf("%q is neither controller nor node", args[0])
	}
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return err
}

// startController starts a controller as package slb does. Options: database and no-database (the default depends on
// the mode of the cluster), class-required, class=NAME (may be repeated), no-metallb, disabled, max-service-backends=N,
// max-namespace-backends=N, max-backends=N, frr-k8s=NAMESPACE, and fenced (as the leader of an election, whose term is
// renewed until the command expire).
func (c *cluster) startController(args []string) (*process, error) {
	p := &process{name: "controller"}
	options := convert.Options{DefaultClass: true, MetalLBAnnotations: true, DrainTaints: convert.DefaultDrainTaints()}
	facts := world.Cluster{
		ClusterSubnets: prefixes("10.244.0.0/16 fd00:10:244::/48"),
		ServiceSubnets: prefixes("10.96.0.0/16 fd00:10:96::/112"),
		Limits: world.Limits{ServiceBackends: slb.DefaultMaxServiceBackends,
			NamespaceBackends: slb.DefaultMaxNamespaceBackends, Backends: slb.DefaultMaxBackends},
		NoDatabase: c.interconnect,
	}
	enabled, frrNamespace := true, ""
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "no-database":
			facts.NoDatabase = true
		case "database":
			facts.NoDatabase = false
		case "no-metallb":
			options.MetalLBAnnotations = false
		case "class-required":
			options.DefaultClass = false
		case "class":
			options.Classes = append(options.Classes, value)
		case "disabled":
			enabled = false
		case "frr-k8s":
			frrNamespace = value
		case "max-service-backends", "max-namespace-backends", "max-backends":
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, err
			}
			limits := map[string]*int{"max-service-backends": &facts.Limits.ServiceBackends,
				"max-namespace-backends": &facts.Limits.NamespaceBackends, "max-backends": &facts.Limits.Backends}
			*limits[name] = n
		case "fenced":
			p.term = fence.NewTerm(termLength)
		default:
			p.name += " " + arg
		}
	}
	options.Mode = world.DefaultMode(enabled)
	p.client = c.server.Client(p.name)
	config, mayWrite := p.client.Config(), func() error { return nil }
	if p.term != nil {
		config, mayWrite = p.term.WrapConfig(config), p.term.Check
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	clients, err := kube.NewClients(config)
	if err == nil {
		clients.ClaimNamespace = home
		err = clients.UseFRR(config, frrNamespace)
	}
	if err != nil {
		return nil, err
	}
	p.metrics = prometheus.NewRegistry()
	r, err := controller.New(controller.Config{Kube: client, Clients: clients, Cluster: facts, Convert: options,
		Registerer: p.metrics,
		Network: func(h controller.Hooks) (*controller.Network, error) {
			if facts.NoDatabase {
				z := zones.New(zones.Options{Clients: clients, Changed: h.Changed, Drifted: h.Drifted, Progress: h.Progress})
				return &controller.Network{Dataplane: z, Observer: z, Zones: z}, nil
			}
			p.ovn = c.fabric.Zone("").Connect(ovn.Options{Changed: controller.OVNEvents(h),
				Transacted: h.Transacted, Translated: h.Translated, Fence: mayWrite})
			return controller.OVN(p.ovn), nil
		}})
	if err != nil {
		return nil, err
	}
	p.health = func() error { return errors.Join(r.Healthy(), r.Alive(time.Minute), r.Missing()) }
	parts := []func(context.Context){func(ctx context.Context) { _ = r.Run(ctx) }} // It ends only with ctx.
	if p.term != nil {
		p.term.Renew(time.Now())
		parts = append(parts, p.renew)
	}
	p.run(c.t.Context(), parts...)
	return p, nil
}

// renew renews the term of a leader until it ends.
func (p *process) renew(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.term.Context().Done():
			return
		case <-tick.C:
			p.term.Renew(time.Now())
		}
	}
}

// startNode starts the process of a node. Options: no-guard, no-l2, boot=ID.
func (c *cluster) startNode(args []string) (*process, error) {
	if len(args) == 0 {
		return nil, errors.New("which node?")
	}
	node := args[0]
	p := &process{name: "node " + node, client: c.server.Client("node " + node)}
	guarded, programs, boot := true, c.interconnect, "boot-1"
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "no-guard":
			guarded = false
		case "no-l2":
			programs = false
		case "boot":
			boot = value
		default:
			return nil, fmt.Errorf("option %q", arg)
		}
	}
	client, err := kubernetes.NewForConfig(p.client.Config())
	if err != nil {
		return nil, err
	}
	leases := client.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
	report, err := nodelease.New(leases, client.CoreV1().Nodes(), node, "l2-guard", nil)
	if err != nil {
		return nil, err
	}
	parts := []func(context.Context){report.Run}
	p.health = func() error { return nil }
	if guarded {
		p.guard = &guard{node: node, leases: leases, report: report, occupied: c.occupied}
		parts = append(parts, p.guard.run)
	} else {
		report.Clear(v1alpha1.AnnotationFaults, v1alpha1.AnnotationLocalnets, v1alpha1.AnnotationConflicts,
			v1alpha1.AnnotationAnnouncedConflicts, v1alpha1.AnnotationProbed, v1alpha1.AnnotationTunnels)
	}
	if programs {
		clients, err := kube.NewClients(p.client.Config())
		if err != nil {
			return nil, err
		}
		a, err := agent.New(agent.Options{Node: node, Boot: boot, Kube: client, Clients: clients, Report: report,
			ClusterSubnets: prefixes("10.244.0.0/16 fd00:10:244::/48"), RunDir: "/nonexistent",
			NewDataplane: func(o ovn.Options) (agent.Dataplane, error) {
				p.ovn = c.fabric.Zone(node).Connect(o)
				return p.ovn, nil
			}})
		if err != nil {
			return nil, err
		}
		p.health = func() error { return errors.Join(a.Healthy(), a.Alive(time.Minute)) }
		parts = append(parts, func(ctx context.Context) { _ = a.Run(ctx) }) // It ends only with ctx.
	} else {
		report.Clear(v1alpha1.AnnotationZone)
	}
	p.run(c.t.Context(), parts...)
	return p, nil
}
