// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// readHandovers computes the progress of planned moves from the states of the zone's shards. a.mu must be held.
func (a *Agent) readHandovers() {
	// The order of gateways and the claim of this node come from its databases, everything else is published.
	if !a.shardStatesChanged.Swap(false) && !a.whole {
		return
	}
	states, _ := a.dataplane.ShardStates()
	if states == nil {
		return // The database can't be read now; nothing can be written, either.
	}
	now := a.handoversTo(a.options.Node, states)
	if !maps.Equal(a.handovers, now) {
		a.outdate(true)
	}
	a.handovers = now
}

// handoversTo returns the progress of the planned moves of shards to a node, given the states of the shards in the
// node's zone, except those that are over or were never begun. All that the zone knows about another gateway is that
// the status of the L2Domain names it as the active one. No other zone takes part: the interval of BFD frames matters
// only at the gateway that claims the shard.
func (p *published) handoversTo(
	node string, states map[world.ShardID]world.ShardState,
) map[world.ShardID]world.Handover {
	handovers := map[world.ShardID]world.Handover{}
	own := p.nodes[node]
	if own == nil || own.Chassis == "" {
		return handovers
	}
	for name, d := range p.domains {
		for _, s := range d.Status.Shards {
			id := world.ShardID{Domain: name, Index: int(s.Index)}
			state, known := states[id]
			if !known || len(s.Gateways) == 0 || s.Gateways[0] != node {
				continue
			}
			if active := p.nodes[s.Active]; state.Active == "" && active != nil && active != own {
				state.Active = active.Chassis
			}
			if h := place.Handover(own.Chassis, state); h != world.NoHandover {
				handovers[id] = h
			}
		}
	}
	return handovers
}

// orderDelay is how long the other zones wait in a planned move until the gateway that the shard moves to has claimed
// it. Until then the previous gateway serves. A zone that writes the order sooner sends its replies to a gateway that
// does not take them yet, or releases the shard while no other gateway has it. On two busy CPUs, a gateway claims a
// shard 60 to 180 ms after its agent has written the order, on others much sooner. While both have it, replies to new
// connections may go to the one without their state, so a longer delay would not be better.
const orderDelay = 50 * time.Millisecond

// releaseDelay is how long the zone of the previous gateway waits, which releases the shard when it writes the order.
// Until the other zones send replies to the new gateway, those to existing connections may go to the previous one. It
// has their state.
const releaseDelay = 150 * time.Millisecond

// orderOf returns the order of a shard's gateways to write: the published one or, for some time after a planned move
// was published, the order before. The zone of the gateway that the shard moves to does not wait. No zone waits if the
// previous gateway is faulty: it does not serve.
func (p *published) orderOf(id world.ShardID, order []string, node string) []string {
	before := p.orders[id]
	if len(before) > 0 && len(order) > 0 && order[0] != before[0] && order[0] != node {
		delay, releases, leaving := orderDelay, before[0] == node, p.isLeaving(id, before[0])
		if releases {
			delay = releaseDelay
		}
		until, deferred := p.deferred[id]
		if !deferred && leaving {
			until = p.now().Add(delay)
			p.deferred[id] = until
		}
		if p.now().Before(until) && (leaving || releases) {
			return before
		}
	}
	delete(p.deferred, id)
	p.orders[id] = order
	return order
}

// pruneOrders forgets the orders of shards that are not published, and that they wait.
func (p *published) pruneOrders() {
	maps.DeleteFunc(p.orders, func(id world.ShardID, _ []string) bool { return !p.shards[id] })
	maps.DeleteFunc(p.deferred, func(id world.ShardID, _ time.Time) bool { return !p.shards[id] })
}

// awaitOrders makes desired run again when the first of the orders that wait is to be written. a.mu must be held.
func (a *Agent) awaitOrders() {
	if len(a.deferred) == 0 {
		return
	}
	wait := releaseDelay
	for _, until := range a.deferred {
		wait = min(wait, until.Sub(a.now()))
	}
	if a.orderTimer == nil {
		a.orderTimer = time.AfterFunc(wait, func() { a.update(func() bool { a.outdate(true); return true }) })
	} else {
		a.orderTimer.Reset(wait)
	}
}

// isLeaving reports whether the status of an L2Domain names a node as the active gateway of a shard, and says that the
// node drains or that shards move, on request or from one that works because of preempt.
func (p *published) isLeaving(id world.ShardID, node string) bool {
	d := p.domains[id.Domain]
	if d == nil || !slices.ContainsFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool {
		return int(s.Index) == id.Index && s.Active == node
	}) {
		return false
	}
	return isMoving(d) || slices.Contains(excluded(d, v1alpha1.ExcludedDraining), node) ||
		d.Spec.Failover.Preempt && !slices.Contains(excluded(d, v1alpha1.ExcludedFaulty), node)
}
