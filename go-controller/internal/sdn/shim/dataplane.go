// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
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
	// Changed is called when a gateway is lost or has returned, or shards have another gateway.
	Changed func()
	// Drifted is called when a node's annotation differs from the desired one; all plans must then be applied. It returns
	// false if that was scheduled already. Calls for the same node are limited (dataplane.Repairs).
	Drifted func() bool
	// Confirmed is called with Services that are no longer pending. Repeat is called with Services that must be applied
	// again: their result is another one, or an address can be taken by its node.
	//
	// All of these are called from any goroutine and must not block.
	Confirmed, Repeat func([]world.Key)
}

// logPause is the time between two log lines about the annotation of the same node. Its kubelet can write it as often
// as it likes.
const logPause = time.Minute

// Dataplane assigns addresses to nodes. It implements dataplane.Dataplane.
type Dataplane struct {
	nodes             corev1client.NodeInterface
	prober            *prober
	changed           func()
	drifted           func() bool
	confirmed, repeat func([]world.Key)
	synced            chan struct{}

	// Used only by the methods of dataplane.Dataplane.
	topology *plan.Topology
	// failing are the Services that failed in the last attempt.
	failing map[world.Key]bool
	// complete is true once every Service named in the annotations was applied or pruned.
	complete bool

	mu sync.Mutex
	// ctx is the context of Run, nil before.
	ctx context.Context
	// plans are the latest ones that were passed to Apply: the assignment of each address depends on all of them. Only the
	// methods of dataplane.Dataplane modify them.
	plans map[world.Key]*plan.Service
	// have is the current assignment, as last observed or written. versions are the versions of the Node objects that
	// contain it. agents are the health check addresses.
	have     sdn.Table
	versions map[string]string
	agents   map[string]netip.AddrPort
	// want is the desired assignment; nil before the first update of the nodes. placed has the same of addresses with a
	// plan.
	want   sdn.Table
	placed map[netip.Addr]placed
	// confirmations are what the nodes have not confirmed of have.
	confirmations confirmations
	// assigned is what we have assigned to nodes and not instructed them to remove since: others can write annotations,
	// too. adopted are the active gateways that the statuses of the domains name at the start.
	assigned sdn.Table
	adopted  map[world.ShardID]world.ShardState
	// waiting are the addresses with a plan that their node does not have, or has not confirmed. expiry ends waits.
	waiting map[netip.Addr]*wait
	expiry  *time.Timer
	// unreleased are the releases that nodes have not confirmed and that are not awaited any more. stale are the
	// generations of addresses that are to be announced again.
	unreleased map[string]*unreleased
	stale      map[netip.Addr]uint64
	// reports are the latest answers of nodes.
	reports map[string]report
	// active are the active gateways of shards.
	active map[world.ShardID]string
	// unreadable are the nodes whose annotation must be rewritten in any case. logged is when that was last logged.
	unreadable map[string]bool
	logged     map[string]time.Time
	// repairs are those of each node: its kubelet can change its annotation again and again, but delays no other node.
	repairs map[string]*dataplane.Repairs
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
		nodes: o.Nodes, changed: o.Changed, drifted: o.Drifted, confirmed: o.Confirmed, repeat: o.Repeat,
		synced: make(chan struct{}), plans: map[world.Key]*plan.Service{}, failing: map[world.Key]bool{},
		have: sdn.Table{}, versions: map[string]string{}, agents: map[string]netip.AddrPort{}, unreadable: map[string]bool{},
		logged: map[string]time.Time{}, repairs: map[string]*dataplane.Repairs{}, confirmations: confirmations{},
		reports: map[string]report{}, active: map[world.ShardID]string{}, assigned: sdn.Table{},
		waiting: map[netip.Addr]*wait{}, unreleased: map[string]*unreleased{}, stale: map[netip.Addr]uint64{},
	}
	d.prober = newProber(d.healthChanged, d.failedChanged)
	close(d.synced) // all required state arrives with the Nodes
	return d
}

// Run checks the health of gateways, and asks them what they have applied, until ctx ends.
func (d *Dataplane) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.ask()
	d.expireLater()
	d.mu.Unlock()
	d.prober.run(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expiry != nil {
		d.expiry.Stop()
	}
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
	changed := map[string]bool{}
	for i, n := range w.Nodes {
		there[n.Name] = true
		if n.Kernel == nil {
			continue
		}
		if n.Kernel.Agent.IsValid() {
			d.agents[n.Name] = n.Kernel.Agent
		}
		if d.recordNode(n) {
			changed[n.Name] = true
		}
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
			delete(d.logged, node)
			delete(d.repairs, node)
			delete(d.reports, node)
			delete(d.unreleased, node)
		}
	}
	if d.want != nil && len(changed) > 0 {
		d.ask()
		if !d.busy {
			d.repair(func(node string) bool { return changed[node] })
		}
	}
	if !d.configured {
		d.orders = sdn.OrdersOf(w.Domains)
	}
	w.ShardStates = d.shardStates()
	d.watch()
}

// shardStates returns the gateways of shards. d.mu must be held.
func (d *Dataplane) shardStates() map[world.ShardID]world.ShardState {
	if d.want == nil {
		return d.have.ShardStates(d.orders)
	}
	states := d.want.ShardStates(d.orders)
	for shard, state := range states {
		state.Active = d.active[shard]
		state.Settled = state.Active == state.Order[0]
		states[shard] = state
	}
	return states
}

// activate determines the active gateways of shards. A gateway is active once its node has confirmed an address. While
// none has, and one still may, it is the one before. A new controller finds that one in the annotations. d.mu must be
// held.
func (d *Dataplane) activate() {
	if d.busy || d.want == nil {
		return
	}
	held := d.held().ShardStates(d.orders)
	active := map[world.ShardID]string{}
	for node, wanted := range d.want {
		for a, h := range wanted {
			if known := held[h.Shard].Active; known != "" {
				active[h.Shard] = known
			} else if q := d.request(node, a); q != nil && q.err == nil && d.active[h.Shard] != "" {
				active[h.Shard] = d.active[h.Shard]
			}
		}
	}
	if !maps.Equal(d.active, active) {
		d.active = active
		d.changed()
	}
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
		if now := time.Now(); now.Sub(d.logged[n.Name]) >= logPause {
			d.logged[n.Name] = now
			klog.ErrorS(errors.New(n.Kernel.Problem), "Failed to parse node annotation, rewriting it", "node", n.Name)
		}
		return true
	}
	was := d.have[n.Name]
	delete(d.have, n.Name)
	for _, h := range n.Kernel.Held {
		d.have.Add(n.Name, h)
	}
	d.stepWritten(difference(n.Name, was, d.have[n.Name]), n.Kernel.Version)
	return true
}

// difference returns the step of another client between two assignments of a node. It may also be one of ours whose
// answer was lost. The node must confirm it in any case.
func difference(node string, was, is map[netip.Addr]world.Held) sdn.Step {
	s := sdn.Step{Node: node}
	for a := range was {
		if _, stays := is[a]; !stays {
			s.Removed = append(s.Removed, a)
		}
	}
	for a := range is {
		if _, before := was[a]; !before {
			s.New = append(s.New, a)
		}
	}
	return s
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
	err := d.syncAll(ctx, func() {
		if !d.configured {
			d.adopted = d.have.ShardStates(d.orders)
		}
		d.orders, d.configured = orders, true
		d.watch()
	})
	if err != nil {
		return fmt.Errorf("write the assignments to nodes: %w", err)
	}
	return nil
}

// Apply implements dataplane.Dataplane.
func (d *Dataplane) Apply(ctx context.Context, changes []dataplane.Change) map[world.Key]error {
	d.mu.Lock()
	for _, c := range changes {
		if c.Want == nil {
			delete(d.plans, c.Key)
			continue
		}
		d.plans[c.Key] = c.Want
		for _, v := range c.Want.VIPs {
			d.confirmations.again(d.placed[v.Addr].node, v.Addr, time.Now())
		}
	}
	failed := d.sync(ctx)
	errs, others := map[world.Key]error{}, map[world.Key]bool{}
	for _, key := range d.servicesOf(failed.changed) {
		others[key] = true
	}
	for _, c := range changes {
		delete(d.failing, c.Key)
		delete(others, c.Key)
		if err := d.failure(failed, c); err != nil {
			errs[c.Key], d.failing[c.Key] = err, true
		}
	}
	d.mu.Unlock()
	d.repeatAll(others)
	return errs
}

// syncAll is sync after a change that concerns no Service in particular, which it makes with the lock held. It returns
// the errors of nodes. Services that fail or recover are applied again, because only Apply can report that.
func (d *Dataplane) syncAll(ctx context.Context, change func()) error {
	d.mu.Lock()
	change()
	failed := d.sync(ctx)
	others := map[world.Key]bool{}
	for key, p := range d.plans {
		if fails := d.failure(failed, dataplane.Change{Key: key, Want: p}) != nil; fails != d.failing[key] {
			d.failing[key], others[key] = fails, true
		}
	}
	d.mu.Unlock()
	d.repeatAll(others)
	return failed.ofNodes()
}

func (d *Dataplane) repeatAll(keys map[world.Key]bool) {
	if len(keys) > 0 {
		d.repeat(slices.Collect(maps.Keys(keys)))
	}
}

// Prune implements dataplane.Dataplane.
func (d *Dataplane) Prune(ctx context.Context, keep func(world.Key) bool) error {
	plans := maps.Clone(d.plans) // keep takes a lock under which Pending is called
	maps.DeleteFunc(plans, func(k world.Key, _ *plan.Service) bool { return !keep(k) })
	if err := d.syncAll(ctx, func() { d.plans, d.complete = plans, true }); err != nil {
		return fmt.Errorf("take from nodes what they need not hold: %w", err)
	}
	return nil
}

// watch checks the health of the gateways of all shards, and of nodes that have addresses or may still hold them. d.mu
// must be held.
func (d *Dataplane) watch() {
	agents := map[string]netip.AddrPort{}
	add := func(node string) {
		if at, ok := d.agents[node]; ok {
			agents[node] = at
		}
	}
	for _, order := range d.orders {
		for _, node := range order {
			add(node)
		}
	}
	for node := range d.have {
		add(node)
	}
	for node := range d.confirmations {
		add(node)
	}
	d.prober.watch(agents)
}
