// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Options configure a Dataplane.
type Options struct {
	// Nodes writes the annotations of nodes.
	Nodes corev1client.NodeInterface
	// Changed is called when a gateway is lost or back, Drifted when a node is told something else
	// than it shall be: apply all. They are called from any goroutine and must not block.
	Changed, Drifted func()
}

// Dataplane tells nodes what to hold. It implements dataplane.Dataplane.
type Dataplane struct {
	nodes   corev1client.NodeInterface
	prober  *prober
	drifted func()
	synced  chan struct{}

	// Used by the methods of dataplane.Dataplane only.
	fabric *plan.Fabric
	plans  map[world.Key]*plan.Service
	// complete: every Service that the annotations name was applied or pruned.
	complete bool
	// unconfirmed are the addresses that a node was told to take and has not confirmed yet.
	unconfirmed map[string][]netip.Addr

	mu sync.Mutex
	// have is what the nodes are told, as far as it was seen or written, versions that of which
	// object, agents where they answer.
	have     sdn.Table
	versions map[string]string
	agents   map[string]netip.AddrPort
	// want is what they shall be told; nil before the first Configure.
	want sdn.Table
	// unreadable are the nodes whose annotation is to be written in any case.
	unreadable map[string]bool
	// gateways are those of all shards; busy: nodes are being told.
	gateways map[string]bool
	busy     bool
}

var _ dataplane.Dataplane = (*Dataplane)(nil)

// New returns a Dataplane that does nothing before Run.
func New(o Options) *Dataplane {
	d := &Dataplane{
		nodes: o.Nodes, prober: newProber(o.Changed), drifted: o.Drifted, synced: make(chan struct{}),
		plans: map[world.Key]*plan.Service{}, unconfirmed: map[string][]netip.Addr{},
		have: sdn.Table{}, versions: map[string]string{}, agents: map[string]netip.AddrPort{}, unreadable: map[string]bool{},
	}
	close(d.synced) // what it has to know comes with the Nodes
	return d
}

// Run asks gateways for their health until ctx ends.
func (d *Dataplane) Run(ctx context.Context) error {
	d.prober.run(ctx)
	return nil
}

// Synced is closed from the start.
func (d *Dataplane) Synced() <-chan struct{} { return d.synced }

// Unreachable is nil: there is no database.
func (d *Dataplane) Unreachable() error { return nil }

// Unread is nil: there is no database.
func (d *Dataplane) Unread() error { return nil }

// Tell takes note of what the snapshot's nodes are told, and adds who carries what and who is lost.
func (d *Dataplane) Tell(w *world.Snapshot) {
	lost := d.prober.losses()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents = map[string]netip.AddrPort{}
	there := make(map[string]bool, len(w.Nodes))
	news := false
	for i, n := range w.Nodes {
		there[n.Name] = true
		if n.Kernel == nil {
			continue
		}
		if n.Kernel.Agent.IsValid() {
			d.agents[n.Name] = n.Kernel.Agent
		}
		news = d.see(n) || news
		if why := lost[n.Name]; why != "" {
			twin := *n
			twin.Faults = maps.Clone(n.Faults)
			if twin.Faults == nil {
				twin.Faults = map[string]string{}
			}
			twin.Faults[world.EveryNetwork] = why
			w.Nodes[i] = &twin
		}
	}
	for node := range d.versions {
		if !there[node] {
			delete(d.have, node)
			delete(d.versions, node)
		}
	}
	told := d.have
	if d.want != nil {
		told = d.want
		if news && !d.busy && d.strays() {
			d.drifted()
		}
	}
	w.Carriers = told.Carriers()
	d.watch()
}

// strays tells whether a node is told something else than it shall be.
func (d *Dataplane) strays() bool {
	return len(d.unreadable) > 0 || len(sdn.Take(d.have, d.want, func(netip.Addr) bool { return false })) > 0
}

// see takes note of a node's annotation unless we know a newer one. One that can't be read is
// written anew: what it had is what we wanted last.
func (d *Dataplane) see(n *world.Node) (news bool) {
	if known, ok := d.versions[n.Name]; ok && !revision.Newer(n.Kernel.Version, known) {
		return false
	}
	d.versions[n.Name] = n.Kernel.Version
	delete(d.unreadable, n.Name)
	if n.Kernel.Problem != "" {
		d.unreadable[n.Name] = true
		klog.ErrorS(errors.New(n.Kernel.Problem), "What a node is told can't be read; it is written anew", "node", n.Name)
		return true
	}
	delete(d.have, n.Name)
	for _, h := range n.Kernel.Held {
		d.have.Add(n.Name, h)
	}
	return true
}

// Configure implements dataplane.Dataplane: it moves what has another first gateway now.
func (d *Dataplane) Configure(ctx context.Context, fabric *plan.Fabric) error {
	d.fabric = fabric
	gateways := map[string]bool{}
	for _, domain := range fabric.Domains {
		for _, s := range domain.Shards {
			for _, g := range s.Gateways {
				gateways[g.Node] = true
			}
		}
	}
	d.mu.Lock()
	d.gateways = gateways
	d.watch()
	d.mu.Unlock()
	if err := d.settle(ctx).any(); err != nil {
		return fmt.Errorf("tell nodes what to hold: %w", err)
	}
	return nil
}

// Apply implements dataplane.Dataplane.
func (d *Dataplane) Apply(ctx context.Context, changes []dataplane.Change) map[world.Key]error {
	for _, c := range changes {
		if c.Want == nil {
			delete(d.plans, c.Key)
		} else {
			d.plans[c.Key] = c.Want
		}
	}
	failed := d.settle(ctx)
	errs := map[world.Key]error{}
	for _, c := range changes {
		if err := failed.of(c); err != nil {
			errs[c.Key] = err
		}
	}
	return errs
}

// Prune implements dataplane.Dataplane.
func (d *Dataplane) Prune(ctx context.Context, keep func(world.Key) bool) error {
	maps.DeleteFunc(d.plans, func(k world.Key, _ *plan.Service) bool { return !keep(k) })
	d.complete = true
	if err := d.settle(ctx).any(); err != nil {
		return fmt.Errorf("take from nodes what they need not hold: %w", err)
	}
	return nil
}

// watch asks the gateways of all shards for their health: those that hold addresses, and those
// that come next. The lock is held.
func (d *Dataplane) watch() {
	agents := map[string]netip.AddrPort{}
	for node := range d.gateways {
		if at, ok := d.agents[node]; ok {
			agents[node] = at
		}
	}
	d.prober.watch(agents)
}
