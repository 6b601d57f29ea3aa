// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

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
	// Changed is called when a gateway is lost or has returned, or shards have another gateway. Drifted is called when a
	// node's annotation differs from the desired one, or a Service fails or recovers without being applied; all plans
	// must then be applied. Both are called from any goroutine and must not block.
	Changed, Drifted func()
}

// Dataplane assigns addresses to nodes. It implements dataplane.Dataplane.
type Dataplane struct {
	nodes   corev1client.NodeInterface
	prober  *prober
	changed func()
	drifted func()
	synced  chan struct{}

	// Used only by the methods of dataplane.Dataplane.
	topology *plan.Topology
	// plans are the latest ones that were passed to Apply: the assignment of each address depends on all of them.
	plans map[world.Key]*plan.Service
	// failing are the Services that failed in the last attempt.
	failing map[world.Key]bool
	// complete is true once every Service named in the annotations was applied or pruned.
	complete bool
	// unconfirmed are the addresses that are assigned to a node and that it has not confirmed yet.
	unconfirmed sdn.Table
	// late is when nodes last did not confirm in time.
	late map[string]time.Time

	mu sync.Mutex
	// have is the current assignment, as last observed or written. versions are the versions of the Node objects that
	// contain it. agents are the health check addresses.
	have     sdn.Table
	versions map[string]string
	agents   map[string]netip.AddrPort
	// want is the desired assignment; nil before the first update of the nodes. confirmed is what the nodes held after the
	// last one; nil until the end of the first one.
	want, confirmed sdn.Table
	// unreadable are the nodes whose annotation must be rewritten in any case.
	unreadable map[string]bool
	// orders are the gateways of all shards: those in the statuses of the domains until there is a topology.
	orders     sdn.Orders
	configured bool
	// busy is true while nodes are being updated.
	busy bool
}

var _ dataplane.Dataplane = (*Dataplane)(nil)

// New returns a Dataplane. It does nothing before Run.
func New(o Options) *Dataplane {
	d := &Dataplane{
		nodes: o.Nodes, prober: newProber(o.Changed), changed: o.Changed, drifted: o.Drifted, synced: make(chan struct{}),
		plans: map[world.Key]*plan.Service{}, failing: map[world.Key]bool{}, unconfirmed: sdn.Table{},
		late: map[string]time.Time{},
		have: sdn.Table{}, versions: map[string]string{}, agents: map[string]netip.AddrPort{}, unreadable: map[string]bool{},
	}
	close(d.synced) // all required state arrives with the Nodes
	return d
}

// Run checks the health of gateways until ctx ends.
func (d *Dataplane) Run(ctx context.Context) error {
	d.prober.run(ctx)
	return nil
}

// Synced returns a channel that is closed from the start.
func (d *Dataplane) Synced() <-chan struct{} { return d.synced }

// Unreachable returns nil because there is no database.
func (d *Dataplane) Unreachable() error { return nil }

// Unread returns nil because there is no database.
func (d *Dataplane) Unread() error { return nil }

// Observe records the assignments of the snapshot's nodes, and adds the states of shards and the faults of lost
// nodes to the snapshot.
func (d *Dataplane) Observe(w *world.Snapshot) {
	lost := d.prober.losses()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents = map[string]netip.AddrPort{}
	there := make(map[string]bool, len(w.Nodes))
	changed := false
	for i, n := range w.Nodes {
		there[n.Name] = true
		if n.Kernel == nil {
			continue
		}
		if n.Kernel.Agent.IsValid() {
			d.agents[n.Name] = n.Kernel.Agent
		}
		changed = d.recordNode(n) || changed
		if why := lost[n.Name]; why != "" {
			updated := *n
			updated.Faults = maps.Clone(n.Faults)
			if updated.Faults == nil {
				updated.Faults = map[string]world.Fault{}
			}
			updated.Faults[world.EveryNetwork] = world.Fault{Kind: world.FaultAgent, Message: why}
			w.Nodes[i] = &updated
		}
	}
	for node := range d.versions {
		if !there[node] {
			delete(d.have, node)
			delete(d.versions, node)
			delete(d.unreadable, node)
		}
	}
	if d.want != nil && changed && !d.busy && d.hasDrifted() {
		d.drifted()
	}
	if !d.configured {
		d.orders = sdn.OrdersOf(w.Domains)
	}
	w.ShardStates = d.shardStates()
	d.watch()
}

// shardStates returns the gateways of shards. A gateway is active once its node has confirmed an address. Until a new
// controller has asked the nodes, it is the one that has an address in its annotation. d.mu must be held.
func (d *Dataplane) shardStates() map[world.ShardID]world.ShardState {
	if d.confirmed == nil {
		return d.have.ShardStates(d.orders)
	}
	held, states := d.confirmed.ShardStates(d.orders), d.want.ShardStates(d.orders)
	for shard, state := range states {
		state.Active = held[shard].Active
		state.Settled = state.Active == state.Order[0]
		states[shard] = state
	}
	return states
}

// hasDrifted reports whether a node's assignment differs from the desired one.
func (d *Dataplane) hasDrifted() bool {
	return len(d.unreadable) > 0 || len(sdn.Take(d.have, d.want, func(netip.Addr) bool { return false })) > 0
}

// recordNode records a node's annotation unless a newer one is known. An annotation that can't be parsed is rewritten;
// its last contents are assumed to be what was last desired.
func (d *Dataplane) recordNode(n *world.Node) (changed bool) {
	if known, ok := d.versions[n.Name]; ok && !revision.Newer(n.Kernel.Version, known) {
		return false
	}
	d.versions[n.Name] = n.Kernel.Version
	delete(d.unreadable, n.Name)
	if n.Kernel.Problem != "" {
		d.unreadable[n.Name] = true
		klog.ErrorS(errors.New(n.Kernel.Problem), "Failed to parse node annotation, rewriting it", "node", n.Name)
		return true
	}
	delete(d.have, n.Name)
	for _, h := range n.Kernel.Held {
		d.have.Add(n.Name, h)
	}
	return true
}

// Configure implements dataplane.Dataplane. It moves the addresses of shards whose first gateway has changed.
func (d *Dataplane) Configure(ctx context.Context, topology *plan.Topology) error {
	d.topology = topology
	orders := sdn.Orders{}
	for _, domain := range topology.Domains {
		for _, s := range domain.Shards {
			for _, g := range s.Gateways {
				orders[s.ID] = append(orders[s.ID], g.Node)
			}
		}
	}
	d.mu.Lock()
	d.orders, d.configured = orders, true
	d.watch()
	d.mu.Unlock()
	if err := d.syncAll(ctx); err != nil {
		return fmt.Errorf("write the assignments to nodes: %w", err)
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
	failed := d.sync(ctx)
	errs := map[world.Key]error{}
	for _, c := range changes {
		delete(d.failing, c.Key)
		if err := failed.of(c); err != nil {
			errs[c.Key], d.failing[c.Key] = err, true
		}
	}
	return errs
}

// syncAll is sync for changes that concern no Service in particular. It returns the errors of nodes. If a Service fails
// or recovers, all plans are applied again, because only Apply can report that.
func (d *Dataplane) syncAll(ctx context.Context) error {
	failed := d.sync(ctx)
	again := false
	for key, p := range d.plans {
		if fails := failed.of(dataplane.Change{Key: key, Want: p}) != nil; fails != d.failing[key] {
			d.failing[key], again = fails, true
		}
	}
	if again {
		d.drifted()
	}
	return failed.ofNodes()
}

// Prune implements dataplane.Dataplane.
func (d *Dataplane) Prune(ctx context.Context, keep func(world.Key) bool) error {
	maps.DeleteFunc(d.plans, func(k world.Key, _ *plan.Service) bool { return !keep(k) })
	d.complete = true
	if err := d.syncAll(ctx); err != nil {
		return fmt.Errorf("take from nodes what they need not hold: %w", err)
	}
	return nil
}

// Pending implements dataplane.Dataplane. It returns the zero time: Apply waits until the nodes have the addresses.
func (d *Dataplane) Pending(world.Key) time.Time { return time.Time{} }

// watch checks the health of the gateways of all shards: those that hold addresses, and those that are next in order.
// d.mu must be held.
func (d *Dataplane) watch() {
	agents := map[string]netip.AddrPort{}
	for _, order := range d.orders {
		for _, node := range order {
			if at, ok := d.agents[node]; ok {
				agents[node] = at
			}
		}
	}
	d.prober.watch(agents)
}
