// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// EventKind is a kind of database event.
type EventKind uint8

// The kinds of events.
const (
	// ShardStates reports that a different chassis has claimed a shard, or that the order of its gateways has changed.
	ShardStates EventKind = iota
	// Chassis reports that a chassis was added or removed, or that its bridges have changed.
	Chassis
	// Rows reports that rows we own differ from what was applied, or that the connection is new. Apply all plans,
	// then Prune.
	Rows
)

// Options configure a Dataplane.
type Options struct {
	// NB is the northbound database, SB the southbound one. Without an SB address, ShardStates reports no active
	// chassis and Bridges returns nil.
	NB, SB Endpoint
	// Zone is the node whose zone the databases belong to, with interconnect, or empty.
	Zone string
	// Boot is the ID of the present boot of that node. If it is set, the node's chassis steps down from the shards whose
	// order was written in an earlier boot, without waiting for Configure and without asking Fence (stepdown.go).
	Boot string
	// Changed is called for each event, from any goroutine, and must not block.
	Changed func(EventKind)
	// Transacted, if set, is called after each transaction sent to the northbound database, with the error if the
	// transaction had no effect. It must not block.
	Transacted func(error)
	// Translated, if set, is called with Services that Pending no longer returns because ovn-northd has translated their
	// rows, or because no shard is left. It is called from any goroutine, and must not block.
	Translated func([]world.Key)
	// Fence, if set, is called right before each transaction. If it returns an error, nothing is sent. It must not
	// block.
	Fence func() error
}

// Dataplane writes plans to OVN. It implements dataplane.Dataplane.
type Dataplane struct {
	nb, sb  *replica // sb is nil without an address
	changed func(EventKind)
	// transacted is called after each transaction.
	transacted func(error)
	// fence returns the reason why nothing may be sent, or nil.
	fence  func() error
	synced chan struct{}
	drift  *drift
	// misplaced is the value that Misplaced returns.
	misplaced atomic.Pointer[map[netip.Addr]bool]
	// claimObserver and keys are nil if sb is nil.
	claimObserver *claimObserver
	keys          *keyChecker
	revisions     *revisions
	// zone and boot are those of the Options. nbSynced receives each time the northbound database has been read.
	zone, boot string
	nbSynced   chan struct{}

	// mu serializes numbered transactions and guards the fields below.
	mu       sync.Mutex
	desired  *desired
	topology *plan.Topology
	builder  *rows.Builder // for the topology; nil before the first Configure
	// formerTimers are the last ones that were changed, by their keys in external_ids of NB_Global.
	formerTimers map[string]formerTimer
	// safeToPrune is true once every Service in the database is desired or was pruned.
	safeToPrune bool
	// retired are deleted Services whose load balancers may still be there (removeRetired).
	retired map[world.Key]bool
	// egressOf are the Services because of which the localnet ports may have to change (egress.go).
	egressOf map[world.Key]bool
	// pruned is true once Prune has run. From then on, rows of Services that are not desired are drift.
	pruned bool
}

var _ dataplane.Dataplane = (*Dataplane)(nil)

// New returns a Dataplane. It does nothing before Run.
func New(o Options) (*Dataplane, error) {
	if err := o.NB.check("northbound"); err != nil {
		return nil, err
	}
	d := &Dataplane{changed: o.Changed, transacted: o.Transacted, fence: o.Fence, synced: make(chan struct{}),
		desired: newDesired(), formerTimers: map[string]formerTimer{}, zone: o.Zone, boot: o.Boot,
		nbSynced: make(chan struct{}, 1), retired: map[world.Key]bool{},
		egressOf: map[world.Key]bool{}}
	if d.changed == nil {
		d.changed = func(EventKind) {}
	}
	if d.transacted == nil {
		d.transacted = func(error) {}
	}
	if d.fence == nil {
		d.fence = func() error { return nil }
	}
	d.revisions = &revisions{translated: o.Translated}
	if o.Translated == nil {
		d.revisions.translated = func([]world.Key) {}
	}
	d.drift = newDrift(d)
	d.nb = &replica{name: "northbound", endpoint: o.NB, schema: northbound(o.Zone), handler: d.drift}
	if o.SB.Address == "" {
		return d, nil
	}
	if err := o.SB.check("southbound"); err != nil {
		return nil, err
	}
	d.claimObserver = &claimObserver{d: d, settle: settleTime, claims: map[string]observedClaim{}}
	d.keys = &keyChecker{d, make(chan struct{}, 1)}
	d.sb = &replica{name: "southbound", endpoint: o.SB, schema: southbound,
		handler: handlers{d.claimObserver, chassisEvents{d}, d.keys, d.revisions}}
	return d, nil
}

// Run connects to the databases and keeps the connections until ctx ends.
func (d *Dataplane) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var unread atomic.Int32
	up := func(kind EventKind) func() {
		unread.Add(1)
		seen := false
		return func() {
			if seen {
				d.changed(kind)
				return
			}
			seen = true
			if unread.Add(-1) == 0 {
				close(d.synced)
			}
		}
	}
	nbUp := up(Rows)
	d.nb.onSynced = func() {
		select {
		case d.nbSynced <- struct{}{}:
		default:
		}
		nbUp()
	}
	d.nb.onDisconnect = func() { d.changed(ShardStates) }
	if d.sb != nil {
		d.sb.onSynced = up(ShardStates)
		d.sb.onReset = func() {
			d.claimObserver.reset()
			d.revisions.reset()
		}
		d.sb.onDisconnect = func() { d.changed(ShardStates) }
		g.Go(func() error { return d.sb.run(ctx) })
		g.Go(func() error { return d.watchMisplacedFlows(ctx) })
		g.Go(func() error { return d.repairKeys(ctx) })
	}
	g.Go(func() error { return d.nb.run(ctx) })
	g.Go(func() error { return d.stepDownAfterBoot(ctx) })
	g.Go(func() error { return d.drift.run(ctx) })
	g.Go(func() error { return d.deleteOrphans(ctx) })
	return g.Wait()
}

// Synced returns a channel that is closed once the databases have been read for the first time.
func (d *Dataplane) Synced() <-chan struct{} { return d.synced }

// Configure implements dataplane.Dataplane. It writes switches, routers and HA chassis groups, and removes those of
// shards that no longer exist or have no address left.
func (d *Dataplane) Configure(ctx context.Context, topology *plan.Topology) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, v, err := d.nb.current()
	if err != nil {
		return fmt.Errorf("configure shards: %w", err)
	}
	d.topology = topology
	builder, err := rows.NewBuilder(topology, facts(v))
	if err != nil {
		return fmt.Errorf("configure shards: %w", err)
	}
	d.builder = builder
	if !d.numbers(builder) {
		d.revisions.settle(math.MaxUint64) // The row with the number goes, and nothing else would end their wait.
	}
	names := slices.Sorted(maps.Keys(d.desired.nodes))
	own := d.topologyOps(v, builder)
	errs := d.commit(ctx, slices.Concat(own, d.nodes(names)))
	services, left := d.splitNodeErrors(d.recordNodeResults(names, errs[len(own):]))
	if err = errors.Join(append(errs[:len(own)], left)...); err == nil {
		err = unnumbered(builder, nil)
	}
	if err != nil {
		err = fmt.Errorf("configure shards: %w", err)
	}
	return withServices(services, err)
}

// splitNodeErrors divides the errors of nodes. If the rows of a node were refused, the Services with backends on it
// have to be applied again. All other errors are left: nothing could be written, or no Service has backends there.
func (d *Dataplane) splitNodeErrors(broken map[string]error) (services map[world.Key]bool, left error) {
	services = map[world.Key]bool{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		there := d.desired.nodes[name]
		if len(there) == 0 || !errors.As(broken[name], new(abortedError)) {
			errs = append(errs, broken[name])
			continue
		}
		for _, s := range there {
			services[s.plan.Key] = true
		}
	}
	return services, errors.Join(errs...)
}

// withServices returns an error that adds Services to another error, which may be nil.
func withServices(services map[world.Key]bool, other error) error {
	if len(services) == 0 {
		return other
	}
	return dataplane.ServicesError{Services: services, Other: other}
}

// unnumbered returns an error for the shards whose routers have no number: those that p uses, or all of them if p is
// nil.
func unnumbered(builder *rows.Builder, p *plan.Service) error {
	left := dataplane.ShardsError{}
	for _, id := range builder.ShardsWithoutOrdinal() {
		if p == nil || slices.ContainsFunc(p.VIPs, func(v plan.VIP) bool { return v.Shard == id }) {
			left[id] = rows.NoOrdinalReason()
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left
}

// Apply implements dataplane.Dataplane.
func (d *Dataplane) Apply(ctx context.Context, changes []dataplane.Change) map[world.Key]error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range changes {
		d.markEgress(c.Key, c.Want)
		d.desired.set(c.Key, c.Want)
	}
	d.checkComplete()
	changes = d.handOver(ctx, changes)
	names := slices.Collect(maps.Keys(d.desired.dirty))
	written, after := d.desired.admitters(changes)
	first := len(names) + len(written) // index of the first change
	for _, c := range changes {
		written = append(written, c.Key)
	}
	written = append(written, after...)
	own := make([]opsFunc, 0, len(written)+1)
	for _, key := range written {
		own = append(own, d.serviceOps(key))
	}
	if len(d.egressOf) > 0 {
		own = append(own, d.localnetOps)
	}
	errs := d.commit(ctx, slices.Concat(d.nodes(names), own))
	broken := d.recordNodeResults(names, errs)
	failed := d.desired.recordAdmitters(ctx, changes, written, errs[len(names):])
	var localnet error
	if len(d.egressOf) > 0 {
		localnet = errs[len(errs)-1]
	}
	for i, c := range changes {
		if err := errs[first+i]; err != nil {
			failed[c.Key] = fmt.Errorf("write load balancers: %w", err)
		} else if localnet != nil && d.egressOf[c.Key] {
			failed[c.Key] = fmt.Errorf("write localnet ports: %w", localnet)
		} else if err := d.desired.brokenFor(c, broken); err != nil {
			failed[c.Key] = fmt.Errorf("write return paths: %w", err)
		} else if c.Want != nil {
			if err := unnumbered(d.builder, c.Want); err != nil {
				failed[c.Key] = fmt.Errorf("write load balancers: %w", err)
			}
		}
		if c.Want == nil {
			d.retired[c.Key] = true
		} else {
			delete(d.retired, c.Key)
		}
	}
	if localnet == nil {
		clear(d.egressOf)
	}
	d.removeRetired(ctx)
	if _, v, err := d.nb.current(); err == nil && d.sb != nil && d.numbers(d.builder) {
		d.revisions.await(v, changes, failed, time.Now())
	}
	return failed
}

// Prune implements dataplane.Dataplane.
func (d *Dataplane) Prune(ctx context.Context, keep func(world.Key) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, v, err := d.nb.current()
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	d.pruned = true
	for key := range d.desired.services {
		if !keep(key) {
			d.desired.set(key, nil)
		}
	}
	opsFuncs := d.staleServices(v, keep)
	for _, key := range slices.Concat(d.desired.admitters(nil)) {
		opsFuncs = append(opsFuncs, d.serviceOps(key))
	}
	if d.builder != nil {
		opsFuncs = append(opsFuncs, d.topologyOps(v, d.builder)...)
	}
	if err := errors.Join(d.commit(ctx, opsFuncs)...); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	clear(d.desired.admitting)
	d.checkComplete()
	var names []string
	if d.builder != nil {
		d.markOrphansDirty(v)
		names = slices.Sorted(maps.Keys(d.desired.dirty))
	}
	errs := d.commit(ctx, append(d.nodes(names), reattachLoadBalancers))
	services, left := d.splitNodeErrors(d.recordNodeResults(names, errs))
	if err = errors.Join(left, errs[len(names)]); err != nil {
		err = fmt.Errorf("prune return paths: %w", err)
	}
	return withServices(services, err)
}
