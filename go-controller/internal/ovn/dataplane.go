// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// What is a kind of news from the databases.
type What uint8

// The kinds of news.
const (
	// Carriers: another chassis carries a shard, or the order of its gateways differs.
	Carriers What = iota
	// Chassis: another one is there, or one has other bridges.
	Chassis
	// Rows: rows of ours differ from what was applied, or the connection is new. Apply all, then Prune.
	Rows
)

// Options configure a Dataplane.
type Options struct {
	// NB is the northbound database, SB the southbound one; without an SB address
	// Carriers knows no active chassis, and Bridges nothing.
	NB, SB Endpoint
	// Changed is called with news, from any goroutine, and must not block.
	Changed func(What)
	// Transacted, if set, is told of each transaction that was sent to the northbound database,
	// with the error if it had no effect. It must not block.
	Transacted func(error)
	// Fence, if set, is asked right before each transaction; with an error nothing is sent. It must not block.
	Fence func() error
}

// Dataplane writes plans to OVN. It implements dataplane.Dataplane.
type Dataplane struct {
	nb, sb  *link // sb is nil without an address
	changed func(What)
	// transacted is told of each transaction.
	transacted func(error)
	// fence says why nothing may be sent, nil for nothing.
	fence  func() error
	synced chan struct{}
	drift  *drift
	// misplaced is what Misplaced returns.
	misplaced atomic.Pointer[map[netip.Addr]bool]
	// sightings is nil without sb.
	sightings *sightings

	// mu makes one transaction at a time, and guards what follows.
	mu     sync.Mutex
	want   *wanted
	fabric *plan.Fabric
	ground *rows.Ground // of the fabric; nil before the first Configure
	// complete: every Service that the database knows is wanted, or was pruned.
	complete bool
}

var _ dataplane.Dataplane = (*Dataplane)(nil)

// New returns a Dataplane that does nothing before Run.
func New(o Options) (*Dataplane, error) {
	if err := o.NB.check("northbound"); err != nil {
		return nil, err
	}
	d := &Dataplane{changed: o.Changed, transacted: o.Transacted, fence: o.Fence, synced: make(chan struct{}), want: newWanted()}
	if d.changed == nil {
		d.changed = func(What) {}
	}
	if d.transacted == nil {
		d.transacted = func(error) {}
	}
	if d.fence == nil {
		d.fence = func() error { return nil }
	}
	d.drift = newDrift(d)
	d.nb = &link{name: "northbound", endpoint: o.NB, schema: northbound, handler: d.drift}
	if o.SB.Address == "" {
		return d, nil
	}
	if err := o.SB.check("southbound"); err != nil {
		return nil, err
	}
	d.sightings = &sightings{d: d, settle: settleTime, claims: map[string]sighting{}}
	d.sb = &link{name: "southbound", endpoint: o.SB, schema: southbound, handler: handlers{d.sightings, chassisNews{d}}}
	return d, nil
}

// Run connects to the databases and keeps the connections until ctx ends.
func (d *Dataplane) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var unread atomic.Int32
	up := func(news What) func() {
		unread.Add(1)
		seen := false
		return func() {
			if seen {
				d.changed(news)
				return
			}
			seen = true
			if unread.Add(-1) == 0 {
				close(d.synced)
			}
		}
	}
	d.nb.up = up(Rows)
	d.nb.down = func() { d.changed(Carriers) }
	if d.sb != nil {
		d.sb.up = up(Carriers)
		d.sb.fresh = d.sightings.forget
		d.sb.down = func() { d.changed(Carriers) }
		g.Go(func() error { return d.sb.run(ctx) })
		g.Go(func() error { return d.inspect(ctx) })
	}
	g.Go(func() error { return d.nb.run(ctx) })
	g.Go(func() error { return d.drift.run(ctx) })
	g.Go(func() error { return d.reapOrphans(ctx) })
	return g.Wait()
}

// Synced is closed once the databases have been read for the first time.
func (d *Dataplane) Synced() <-chan struct{} { return d.synced }

// Configure implements dataplane.Dataplane: it writes switches, routers and HA chassis
// groups, and removes those of shards that are gone or have no address left.
func (d *Dataplane) Configure(ctx context.Context, fabric *plan.Fabric) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, v, err := d.nb.current()
	if err != nil {
		return fmt.Errorf("configure shards: %w", err)
	}
	d.fabric = fabric
	ground, err := rows.Lay(fabric, facts(v))
	if err != nil {
		return fmt.Errorf("configure shards: %w", err)
	}
	d.ground = ground
	names := slices.Collect(maps.Keys(d.want.nodes))
	own := d.groundUnits(v, ground)
	errs := d.commit(ctx, slices.Concat(own, d.nodes(names)))
	d.made(names, errs[len(own):])
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("configure shards: %w", err)
	}
	if left := numberless(ground, nil); left != nil {
		return fmt.Errorf("configure shards: %w", left)
	}
	return nil
}

// numberless are the shards for whose routers there is no number: of a plan, or with nil of all.
func numberless(ground *rows.Ground, p *plan.Service) error {
	left := dataplane.ShardsError{}
	for _, id := range ground.Numberless() {
		if p == nil || slices.ContainsFunc(p.VIPs, func(v plan.VIP) bool { return v.Shard == id }) {
			left[id] = rows.NumberlessText()
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
		d.want.set(c.Key, c.Want)
	}
	d.learn()
	names := slices.Collect(maps.Keys(d.want.unsure))
	own := make([]unit, 0, len(changes))
	for _, c := range changes {
		own = append(own, d.service(c.Key))
	}
	errs := d.commit(ctx, slices.Concat(d.nodes(names), own))
	broken := d.made(names, errs)
	failed := map[world.Key]error{}
	for i, c := range changes {
		if err := errs[len(names)+i]; err != nil {
			failed[c.Key] = fmt.Errorf("write load balancers: %w", err)
		} else if err := common(c.Want, broken); err != nil {
			failed[c.Key] = fmt.Errorf("write return paths: %w", err)
		} else if c.Want != nil {
			if err := numberless(d.ground, c.Want); err != nil {
				failed[c.Key] = fmt.Errorf("write load balancers: %w", err)
			}
		}
	}
	return failed
}

// common is what went wrong on nodes that a plan needs. A Service that goes may have needed any.
func common(p *plan.Service, broken map[string]error) error {
	var errs []error
	for name, err := range broken {
		if p == nil || behind(p, name) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Prune implements dataplane.Dataplane.
func (d *Dataplane) Prune(ctx context.Context, keep func(world.Key) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, v, err := d.nb.current()
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	for key := range d.want.plans {
		if !keep(key) {
			d.want.set(key, nil)
		}
	}
	units := d.staleServices(v, keep)
	if d.ground != nil {
		units = append(units, d.groundUnits(v, d.ground)...)
	}
	if err := errors.Join(d.commit(ctx, units)...); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	d.learn()
	var names []string
	if d.ground != nil {
		d.doubtOrphans(v)
		names = slices.Collect(maps.Keys(d.want.unsure))
	}
	errs := d.commit(ctx, append(d.nodes(names), attachAll))
	d.made(names, errs)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("prune return paths: %w", err)
	}
	return nil
}
