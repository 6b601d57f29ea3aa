// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/controller"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones/agent"
)

// Dataplane is the connection of one process to the databases of a zone. Its fields are protected by the mutex of the
// Fabric.
type Dataplane struct {
	zone    *Zone
	options ovn.Options
	synced  chan struct{}
	read    bool
	// since is when the southbound database was last read.
	since time.Time

	plans map[world.Key]*plan.Service
	// restricted indexes the plans with source ranges, and admitting has the Services whose ACLs change because of others.
	restricted rows.Restricted
	admitting  map[world.Key]bool
	builder    *rows.Builder
	// complete is set once each Service in the database has a plan here or was pruned. Until then the rows of nodes only
	// grow.
	complete bool
	pending  map[world.Key]pending
	// cut is set if the process was killed.
	cut bool
}

// Cut makes every transaction fail from now on, because the process was killed.
func (d *Dataplane) Cut() { d.locked(func() { d.cut = true }) }

// pending is the transaction that a Service waits for, and since when it has been waiting for any.
type pending struct {
	number uint64
	since  time.Time
}

var (
	_ controller.OVNDataplane = (*Dataplane)(nil)
	_ agent.Dataplane         = (*Dataplane)(nil)
)

// Connect returns the connection of a new process. It does nothing before Run. The endpoints in the options have no
// meaning.
func (z *Zone) Connect(o ovn.Options) *Dataplane {
	if o.Changed == nil {
		o.Changed = func(ovn.EventKind) {}
	}
	if o.Transacted == nil {
		o.Transacted = func(error) {}
	}
	if o.Translated == nil {
		o.Translated = func([]world.Key) {}
	}
	if o.Fence == nil {
		o.Fence = func() error { return nil }
	}
	return &Dataplane{zone: z, options: o, synced: make(chan struct{}), plans: map[world.Key]*plan.Service{},
		admitting: map[world.Key]bool{}, pending: map[world.Key]pending{}}
}

// Run keeps the connection until ctx is done.
func (d *Dataplane) Run(ctx context.Context) error {
	d.zone.do(func() []func() {
		d.zone.connected[d] = true
		return d.reconnected(!d.zone.noNB, !d.zone.noSB, false)
	})
	<-ctx.Done()
	d.zone.do(func() []func() {
		delete(d.zone.connected, d)
		return nil
	})
	return nil
}

// reconnected returns the calls that report that databases have been read again or lost.
func (d *Dataplane) reconnected(nb, sb, lost bool) []func() {
	var calls []func()
	if nb {
		d.stepDown()
	}
	if sb {
		d.since = time.Now()
		time.AfterFunc(settleTime, func() { d.options.Changed(ovn.ShardStates) })
	}
	switch {
	case !d.read && !d.zone.noNB && !d.zone.noSB:
		d.read = true
		close(d.synced)
	case d.read && nb:
		calls = append(calls, func() { d.options.Changed(ovn.Rows) })
	case d.read && sb || lost:
		calls = append(calls, func() { d.options.Changed(ovn.ShardStates) })
	}
	return calls
}

// stepDown puts the chassis of the zone behind the other gateways of shards whose order was written in another boot.
func (d *Dataplane) stepDown() {
	for ref, r := range d.zone.rows {
		id, _ := world.ParseShard(r.ExternalIDs()[rows.KeyShard])
		boot, priority := r.ExternalIDs()[rows.KeyBoot], r.Columns["priority"]
		members := membersOf(d.zone.rows, id)
		if boot == "" || d.options.Boot == "" || boot == d.options.Boot || priority == rows.SteppedDown ||
			len(members) < 2 || !rows.IsGatewayPriority(members[1].priority) {
			continue
		}
		next := r
		next.Columns = maps.Clone(r.Columns)
		next.Columns["priority"] = rows.SteppedDown
		d.zone.put(ref, &next)
		d.zone.written++
		d.zone.translateLater()
	}
}

// Synced implements the interfaces.
func (d *Dataplane) Synced() <-chan struct{} { return d.synced }

var errNotConnected = errors.New("not connected")

func (d *Dataplane) locked(read func()) {
	d.zone.fabric.mu.Lock()
	defer d.zone.fabric.mu.Unlock()
	read()
}

func (d *Dataplane) lacking(nb, sb bool) (err error) {
	d.locked(func() {
		var errs []error
		if nb && d.zone.noNB {
			errs = append(errs, fmt.Errorf("northbound database: %w", errNotConnected))
		}
		if sb && d.zone.noSB {
			errs = append(errs, fmt.Errorf("southbound database: %w", errNotConnected))
		}
		err = errors.Join(errs...)
	})
	return err
}

// Unreachable implements the interfaces.
func (d *Dataplane) Unreachable() error { return d.lacking(true, true) }

// Unread is like Unreachable.
func (d *Dataplane) Unread() error { return d.lacking(true, true) }

// UnreadNB is like Unread for the northbound database.
func (d *Dataplane) UnreadNB() error { return d.lacking(true, false) }

// UnreadSB is like Unread for the southbound database.
func (d *Dataplane) UnreadSB() error { return d.lacking(false, true) }

// OwnsZone implements agent.Dataplane.
func (d *Dataplane) OwnsZone() bool { return d.zone.node != "" && d.UnreadNB() == nil }

// LacksTransit implements agent.Dataplane: OVN-Kubernetes has connected each node.
func (d *Dataplane) LacksTransit() bool { return false }

// Misplaced implements the interfaces: all logical flows are where they belong.
func (d *Dataplane) Misplaced() map[netip.Addr]bool { return nil }

// Miskeyed implements agent.Dataplane: all tunnel keys are as requested.
func (d *Dataplane) Miskeyed() []string { return nil }

// Bridges implements the interfaces. A zone has those of its own node.
func (d *Dataplane) Bridges() (all map[string]world.Bridges) {
	d.locked(func() {
		if d.zone.noSB {
			return
		}
		all = map[string]world.Bridges{}
		for name, c := range d.zone.fabric.chassis {
			if d.zone.node == "" || d.zone.node == c.node {
				all[name] = world.ParseBridges(c.bridges)
			}
		}
	})
	return all
}

// ShardStates implements the interfaces.
func (d *Dataplane) ShardStates() (states map[world.ShardID]world.ShardState, claimsRead bool) {
	d.locked(func() {
		if d.zone.noNB {
			return
		}
		claimsRead = !d.zone.noSB
		states = d.zone.shardStates()
		for id, state := range states {
			since := d.zone.claims[id].since
			if d.since.After(since) {
				since = d.since
			}
			if state.Settled = state.Active != "" && time.Since(since) >= settleTime; !claimsRead {
				state.Active, state.Settled = "", false
			}
			states[id] = state
		}
	})
	return states, claimsRead
}

// Announced implements controller.OVNDataplane.
func (d *Dataplane) Announced(services []world.Key) (all map[netip.Addr]bool) {
	d.locked(func() {
		if d.zone.noNB {
			return
		}
		all = map[netip.Addr]bool{}
		for _, r := range d.zone.rows {
			key, _ := parseKey(r.ExternalIDs()[rows.KeyService])
			vips, _ := r.Columns["vips"].(map[string]string)
			for vip := range vips {
				if at, err := netip.ParseAddrPort(vip); err == nil && slices.Contains(services, key) {
					all[at.Addr()] = true
				}
			}
		}
	})
	return all
}

// Pending implements dataplane.Dataplane.
func (d *Dataplane) Pending(key world.Key) (since time.Time) {
	d.locked(func() { since = d.pending[key].since })
	return since
}

// Stalled implements agent.Dataplane.
func (d *Dataplane) Stalled() (since time.Time) {
	d.locked(func() {
		for _, p := range d.pending {
			since = world.Earliest(since, p.since)
		}
		if !since.IsZero() && d.zone.advanced.After(since) {
			since = d.zone.advanced
		}
	})
	return since
}

// takeTranslated returns the Services that no longer wait.
func (d *Dataplane) takeTranslated() []world.Key {
	var done []world.Key
	for key, p := range d.pending {
		if p.number <= d.zone.seen {
			done = append(done, key)
			delete(d.pending, key)
		}
	}
	slices.SortFunc(done, world.Key.Compare)
	return done
}

func parseKey(text string) (world.Key, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	return world.Key{Namespace: namespace, Name: name}, ok
}

var _ dataplane.Dataplane = (*Dataplane)(nil)
