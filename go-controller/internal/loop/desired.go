// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// desired is one whole state that the dataplane must reach. It is the only one with a dataplane: the decision, from
// which the controller sets it, and the ServicePlans, from which agents do, belong to other goroutines.
type desired struct {
	topology *plan.Topology
	plans    map[world.Key]*plan.Service // none is nil
	// unknown are the Services that stay as the dataplane has them. None has a plan.
	unknown map[world.Key]struct{}
}

// newDesired copies the maps, which the caller goes on changing. A Service with a plan is not unknown.
func newDesired(
	topology *plan.Topology, plans map[world.Key]*plan.Service, unknown map[world.Key]struct{},
) *desired {
	d := &desired{topology: topology, plans: make(map[world.Key]*plan.Service, len(plans)),
		unknown: map[world.Key]struct{}{}}
	for k := range unknown {
		d.unknown[k] = struct{}{}
	}
	for k, p := range plans {
		if p != nil {
			d.set(k, p)
		}
	}
	return d
}

// set replaces the plan of a Service, nil for none. It reports whether an unknown Service is gone with that.
func (d *desired) set(k world.Key, p *plan.Service) (gone bool) {
	_, was := d.unknown[k]
	delete(d.unknown, k)
	if p == nil {
		delete(d.plans, k)
	} else {
		d.plans[k] = p
	}
	return was && p == nil
}

// has reports whether the dataplane must have a Service.
func (d *desired) has(k world.Key) bool {
	_, unknown := d.unknown[k]
	return unknown || d.plans[k] != nil
}

// losesUnknown reports whether a Service that is unknown in d is gone in the next state.
func (d *desired) losesUnknown(next *desired) bool {
	for k := range d.unknown {
		if !next.has(k) {
			return true
		}
	}
	return false
}

// reorders reports whether the next topology changes which gateway of a shard is active: by another order, a handover
// that proceeds, or because layer 2 is withdrawn. Both may be nil.
func reorders(was, next *plan.Topology) bool {
	if was == nil || next == nil {
		return false
	}
	shards := map[world.ShardID]plan.Shard{}
	for _, d := range was.Domains {
		for _, s := range d.Shards {
			shards[s.ID] = s
		}
	}
	sameNode := func(a, b plan.Gateway) bool { return a.Node == b.Node }
	for _, d := range next.Domains {
		for _, s := range d.Shards {
			before, known := shards[s.ID]
			if known && (before.Handover != s.Handover || !slices.EqualFunc(before.Gateways, s.Gateways, sameNode)) {
				return true
			}
		}
	}
	return len(was.Domains) > 0 && len(next.Domains) == 0
}
