// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"cmp"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// settleTime is how long a gateway must have claimed a shard until that counts as a decision of OVN.
const settleTime = 5 * time.Second

// doubtTime is how long a gateway must have claimed a shard until one that had it before and is silent counts as a
// rival. If its node is lost, its kubelet counts as silent by then (--node-monitor-grace-period: at most 50 s by
// default).
const doubtTime = time.Minute

// seenClaim is a claim of a shard: since when according to the node's own clock, and when this process saw it first.
// superseded is set once the claim of another node counted while this node did not stand by its own. cutOff is set
// while the node reports that it does not reach the others, as it did when it claimed the shard.
type seenClaim struct {
	at, seen           time.Time
	superseded, cutOff bool
}

// countsBefore reports whether a claim of a node counts rather than another one. A claim that was superseded does not
// come back by being reported again: a node that has booted renews what it reported before. Then a report that has
// expired comes after one that has not, the claim of a node that is cut off after that of one that works, and a claim
// that was seen earlier after a later one.
func countsBefore(n, other *world.Node, claim, latest seenClaim) bool {
	switch {
	case claim.superseded != latest.superseded:
		return latest.superseded
	case n.Agent.Silent != other.Agent.Silent:
		return other.Agent.Silent
	case claim.cutOff && !latest.cutOff && stands(other):
		return false
	case latest.cutOff && !claim.cutOff && stands(n):
		return true
	}
	return claim.seen.After(latest.seen)
}

// activeGateways returns the active gateways of the shards, and records the states of the shards. A gateway
// that died leaves its last report behind, so the claim that was seen last is the current one, or that whose report has
// not expired. It settles only once no other gateway stands by a claim of its own. The clocks of nodes are compared
// only for the claims that exist when this process starts. A node that is no gateway of a shard can't be active for it,
// whatever it reports.
func (p *Publisher) activeGateways(
	w *world.Snapshot, gateways map[world.ShardID][]string,
) map[world.ShardID]*world.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	claims, active := map[world.ShardID]map[string]seenClaim{}, map[world.ShardID]*world.Node{}
	latest := map[world.ShardID]seenClaim{}
	former := map[world.ShardID]map[string]seenClaim{}
	fresh := false
	for _, n := range w.Nodes {
		if n.Agent == nil || n.Chassis == "" {
			continue
		}
		for shard, at := range n.Agent.Claims {
			if !slices.Contains(gateways[shard], n.Name) {
				p.keepFormer(former, n, shard, at)
				continue
			}
			claim, isNew := p.observeClaim(shard, n.Name, at, w.Now)
			fresh = fresh || isNew
			switch {
			case isNew:
				claim.cutOff = p.claims != nil && n.Tunnels != nil && n.Tunnels.AllDown > 0
			case claim.cutOff:
				claim.cutOff = missesRival(n, shard, w.Nodes)
			}
			if claims[shard] == nil {
				claims[shard] = map[string]seenClaim{}
			}
			claims[shard][n.Name] = claim
			if other := active[shard]; other != nil && !countsBefore(n, other, claim, latest[shard]) {
				continue
			}
			latest[shard], active[shard] = claim, n
			w.ShardStates[shard] = world.ShardState{Active: n.Name, Settled: w.Now.Sub(claim.seen) >= settleTime}
		}
	}
	recordDisputes(w, claims, former, active, latest)
	p.claims, p.former = claims, former
	if fresh { // nothing else reports that the claim has settled, or is in doubt
		time.AfterFunc(settleTime, p.options.Changed)
		time.AfterFunc(doubtTime, p.options.Changed)
	}
	return active
}

// recordDisputes records the shards that another node than the active gateway may have, too.
func recordDisputes(w *world.Snapshot, claims, former map[world.ShardID]map[string]seenClaim,
	active map[world.ShardID]*world.Node, latest map[world.ShardID]seenClaim) {
	for shard, byNode := range claims {
		if disputed, silent := supersede(w.Nodes, active[shard].Name, byNode); disputed {
			state := w.ShardStates[shard]
			state.Settled = false
			if w.Now.Sub(latest[shard].seen) >= doubtTime {
				state.SilentRival = silent
			}
			w.ShardStates[shard] = state
		}
	}
	for shard, byNode := range former {
		if state, claimed := w.ShardStates[shard]; claimed && w.Now.Sub(latest[shard].seen) >= doubtTime {
			state.SilentRival = cmp.Or(state.SilentRival, firstSilent(w.Nodes, byNode))
			w.ShardStates[shard] = state
		}
	}
}

// keepFormer keeps the claim of a node that was a gateway of a shard when it claimed it, and is none any more, until
// the node reports that it has released the shard or does not stand by the claim. A hanging agent does not learn that
// the node was excluded, and its zone goes on answering. p.mu must be held.
func (p *Publisher) keepFormer(former map[world.ShardID]map[string]seenClaim, n *world.Node, shard world.ShardID,
	at time.Time) {
	claim, known := p.knownClaim(shard, n.Name)
	if !known || !claim.at.Equal(at) || claim.superseded || !stands(n) {
		return
	}
	if former[shard] == nil {
		former[shard] = map[string]seenClaim{}
	}
	former[shard][n.Name] = claim
}

// firstSilent returns the first node with a claim whose agent is silent, or an empty string.
func firstSilent(nodes []*world.Node, claims map[string]seenClaim) string {
	for _, n := range nodes {
		if _, claimed := claims[n.Name]; claimed && n.Agent.Silent {
			return n.Name
		}
	}
	return ""
}

// missesRival reports whether a node that was cut off reports that it still reaches no other, or no other gateway that
// has claimed a shard. When a node that was cut off returns, its BFD sessions come up one after the other: it claims a
// shard, and releases it once it receives the active gateway, which serves meanwhile. When a gateway dies, those that
// claim its shards were not cut off.
func missesRival(n *world.Node, shard world.ShardID, nodes []*world.Node) bool {
	return n.Tunnels != nil && (n.Tunnels.AllDown > 0 || slices.ContainsFunc(nodes, func(other *world.Node) bool {
		return other.Name != n.Name && other.Agent != nil && !other.Agent.Claims[shard].IsZero() &&
			slices.Contains(n.Tunnels.Down, other.Chassis)
	}))
}

// observeClaim returns the claim of a shard by a node since at, by the node's clock, and whether it is new. p.mu must
// be held.
func (p *Publisher) observeClaim(shard world.ShardID, node string, at, now time.Time) (claim seenClaim, isNew bool) {
	if claim, known := p.knownClaim(shard, node); known && claim.at.Equal(at) {
		return claim, false
	}
	if p.claims == nil && at.Before(now) { // it is older than this process
		return seenClaim{at: at, seen: at}, true
	}
	return seenClaim{at: at, seen: now}, true
}

// knownClaim returns the claim of a shard by a node that is, or was, one of its gateways. p.mu must be held.
func (p *Publisher) knownClaim(shard world.ShardID, node string) (claim seenClaim, known bool) {
	if claim, known = p.claims[shard][node]; !known {
		claim, known = p.former[shard][node]
	}
	return claim, known
}

// stands reports whether what a gateway claims may be what it does: nothing says that it does not work. As long as that
// holds, the claim of another one has not settled, and the order of the gateways stays as it is: otherwise whoever can
// write the Lease of one node could take a shard from its gateway, which would release it. That its agent is silent is
// not enough as long as its kubelet reports: all agents are one user of the API server, so one of them can keep the
// others from writing.
func stands(n *world.Node) bool {
	if n.Unreachable {
		return false
	}
	for _, fault := range n.Faults {
		if fault.Kind != world.FaultUnwritable && fault.Kind != world.FaultNorthd {
			return false
		}
	}
	return true
}

// supersede marks the claims of a shard by gateways other than the active one that do not stand by them, or that came
// later and are silent. It reports whether one stands, and returns the last one of these that is silent.
func supersede(nodes []*world.Node, active string, claims map[string]seenClaim) (disputed bool, silent string) {
	for _, n := range nodes {
		claim, claimed := claims[n.Name]
		if !claimed || n.Name == active {
			continue
		}
		later := claim.seen.After(claims[active].seen)
		claim.superseded = claim.superseded || !stands(n) || n.Agent.Silent && later
		claims[n.Name] = claim
		if claim.superseded {
			continue
		}
		disputed = true
		if n.Agent.Silent {
			silent = n.Name
		}
	}
	return disputed, silent
}

// addRivals adds the other gateways that have claimed a shard, according to reports that are current.
func addRivals(w *world.Snapshot, gateways map[world.ShardID][]string) {
	for _, n := range w.Nodes {
		if n.Agent == nil || n.Agent.Silent || n.Chassis == "" {
			continue
		}
		for shard := range n.Agent.Contested {
			state, claimed := w.ShardStates[shard]
			if !claimed || state.Active == n.Name || n.Agent.Claims[shard].IsZero() ||
				!slices.Contains(gateways[shard], n.Name) {
				continue
			}
			state.Rivals = append(state.Rivals, n.Name)
			w.ShardStates[shard] = state
		}
	}
}
