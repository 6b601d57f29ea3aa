// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// readHandovers computes the progress of planned moves from the states of the zone's shards. a.mu must be held.
func (a *Agent) readHandovers() {
	// The order of gateways and the claim of this node come from its databases, everything else is published.
	if !a.shardStatesChanged.Swap(false) && !a.whole {
		return
	}
	states := a.dataplane.ShardStates()
	if states == nil {
		return // The database can't be read now; nothing can be written, either.
	}
	now := a.handoversTo(a.options.Node, states)
	a.whole = a.whole || !maps.Equal(a.handovers, now)
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
