// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// orders returns for each shard the members in order of preference, fitter ones first.
func (d *Domain) orders(members []*world.Node, shardStates map[world.ShardID]world.ShardState) [][]*world.Node {
	var groups [faulty + 1][]int
	for i, n := range members {
		f := d.fitness(n)
		groups[f] = append(groups[f], i)
	}
	best := d.best(members)
	weight := make([][]uint64, len(d.seeds))
	first := make([]int, len(d.seeds))
	for i, s := range d.seeds {
		weight[i] = make([]uint64, len(members))
		for j, n := range members {
			weight[i][j] = mix(fnv(s, n.Name))
		}
		first[i] = noMember
		switch to := d.moveTarget(i); {
		case to != "":
			first[i] = slices.IndexFunc(members, func(n *world.Node) bool { return n.Name == to })
		case !d.Spec.Preempt:
			state, best := shardStates[world.ShardID{Domain: d.Spec.Name, Index: i}], best
			if len(state.Missed) > 0 {
				best = d.best(notMissing(members, state))
			}
			first[i] = d.currentGateway(members, best, state)
		}
	}
	orders := make([][]*world.Node, len(d.seeds))
	preference := d.preference()
	for _, group := range groups {
		for i, ranks := range order(weight, tiers(members, group, preference), first, d.Spec.MaxGateways) {
			for _, j := range ranks {
				orders[i] = append(orders[i], members[j])
			}
		}
	}
	for i := range orders {
		state := shardStates[world.ShardID{Domain: d.Spec.Name, Index: i}]
		if d.moveTarget(i) != "" || d.Spec.Preempt && len(orders[i]) > 0 {
			orders[i] = d.withCurrent(orders[i], members, state)
		}
		if n := d.keptThoughStale(members, first[i], best, state); n != nil {
			orders[i] = append([]*world.Node{n}, without(orders[i], n)...)
		}
		if len(state.Missed) > 0 {
			slices.SortStableFunc(orders[i], func(a, b *world.Node) int {
				return cmp.Compare(misses(state, a), misses(state, b))
			})
		}
		if n := d.immovable(members, state); n != nil {
			orders[i] = append([]*world.Node{n}, without(orders[i], n)...)
		}
	}
	return orders
}

// keptThoughStale returns the current gateway of a shard, given by index without preempt, if it has or had stale flows
// and continues although others may be fitter, or nil.
func (d *Domain) keptThoughStale(members []*world.Node, first int, best fitness, c world.ShardState) *world.Node {
	if d.Spec.Preempt && best >= recentlyStale {
		first = d.currentGateway(members, best, c)
	}
	if first == noMember {
		return nil
	}
	if f := d.fitness(members[first]); f != stale && f != recentlyStale {
		return nil
	}
	return members[first]
}

// preference returns how much the domain prefers each node that one of its preferences matches.
func (d *Domain) preference() map[string]int {
	sum := map[string]int{}
	for _, p := range d.Spec.Preferred {
		for _, name := range p.Nodes {
			sum[name] += p.Weight
		}
	}
	return sum
}

// tiers divides members, given by index, by preference, the most preferred ones first.
func tiers(members []*world.Node, group []int, preference map[string]int) [][]int {
	equals := map[int][]int{}
	for _, i := range group {
		p := preference[members[i].Name]
		equals[p] = append(equals[p], i)
	}
	var out [][]int
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(equals))) {
		out = append(out, equals[p])
	}
	return out
}

// notMissing returns the members that have not failed to claim a shard, or all if each has.
func notMissing(members []*world.Node, state world.ShardState) []*world.Node {
	rest := slices.DeleteFunc(slices.Clone(members), func(n *world.Node) bool { return misses(state, n) > 0 })
	if len(rest) == 0 {
		return members
	}
	return rest
}

// misses returns 1 for a gateway that has not claimed the shard when it had to, and 0 for others.
func misses(state world.ShardState, n *world.Node) int {
	if slices.Contains(state.Missed, n.Name) {
		return 1
	}
	return 0
}

// without returns an order without a member.
func without(order []*world.Node, n *world.Node) []*world.Node {
	return slices.DeleteFunc(order, func(m *world.Node) bool { return m == n })
}

// immovable returns the active gateway of a shard if it serves but its zone can't be changed or its agent is silent, or
// nil. It would not learn of another order: it would keep the shard, and two gateways would answer. A node that is
// drained moves all the same if its agent only says that the zone can't be changed: it is about to end anyway, and what
// one node says of itself must not keep an administrator from taking its shards away. A claim that has not settled, by
// another gateway than the first one, may be forged: it must not take the shard from the first one, which stays if only
// its agent is silent.
func (d *Domain) immovable(members []*world.Node, c world.ShardState) *world.Node {
	if !c.Settled && slices.Index(c.Order, c.Active) > 0 {
		return d.silentFirst(members, c)
	}
	for _, n := range members {
		if n.Name != c.Active || n.Agent == nil {
			continue
		}
		if fault := d.fault(n); fault == n.Agent.Unwritable && (fault != "" && n.Draining == "" || n.Agent.Silent) {
			return n
		}
	}
	return nil
}

// silentFirst returns the first gateway of a shard if only its agent is silent and it has missed no claim, or nil. One
// that has missed a claim does not serve the shard: it need not keep it.
func (d *Domain) silentFirst(members []*world.Node, c world.ShardState) *world.Node {
	i := slices.IndexFunc(members, func(n *world.Node) bool { return n.Name == c.Order[0] })
	if i < 0 || members[i].Unreachable || members[i].Draining != "" || d.fitness(members[i]) != silent ||
		misses(c, members[i]) > 0 {
		return nil
	}
	return members[i]
}

// currentGateway returns the active gateway of a shard, or noMember if none may continue. As long as no member is
// known to have settled as the active one, it is the member that OVN is configured to prefer: a gateway that returns
// may claim a shard for a moment and must not keep it because of that. The member continues only if none is fitter (see
// keepsShards).
// Moving its shards to another gateway that is about to leave would not help.
func (d *Domain) currentGateway(members []*world.Node, best fitness, c world.ShardState) int {
	preferred := []string{"", c.Active}
	if len(c.Order) > 0 {
		preferred[0] = c.Order[0]
		// A claim that has not settled may be forged, and must not attract the shards of each node that drains.
		if !c.Settled && slices.ContainsFunc(members, func(n *world.Node) bool {
			return n.Name == c.Order[0] && d.fitness(n) == draining
		}) {
			preferred = preferred[:1]
		}
	}
	if c.Settled {
		slices.Reverse(preferred)
	}
	for _, name := range preferred {
		i := slices.IndexFunc(members, func(n *world.Node) bool {
			return n.Name == name && d.keepsShards(n, best)
		})
		if i >= 0 {
			return i
		}
	}
	return noMember
}

// Handover returns the progress of the move of a shard to another gateway, given the progress last written. A
// failover is not a handover: no write of ours would speed it up.
func Handover(to string, c world.ShardState) world.Handover {
	switch {
	case c.Active == "":
		return c.Handover
	case c.Active == to && (c.Settled || c.Handover == world.NoHandover):
		return world.NoHandover
	case c.Active == to:
		return world.HandoverClaimed
	case slices.Index(c.Order, c.Active) == 0 || c.Handover == world.HandoverAwaited:
		return world.HandoverAwaited
	}
	return world.NoHandover
}

// noMember is the index of no node.
const noMember = -1

// order returns for each shard all nodes in order of preference. Nodes of a tier precede those of the next one. At
// every rank of a tier, the shards are distributed evenly over its nodes. The shards of one node are distributed evenly
// over the others at the next rank, so that the shards of a gateway that fails spread out. weight has a row per shard
// with one hash per node; nodes are indices. first[i] is the node that comes first for shard i whatever the tiers and
// the weights are, or no node. Only the first most ranks are computed; 0 computes all.
func order(weight [][]uint64, tiers [][]int, first []int, most int) [][]int {
	o := ordering{weight: weight, maxRanks: most, ranks: make([][]int, len(weight))}
	var free []int
	held := map[int][]int{} // the shards of the nodes that precede a tier that is preferred to theirs
	for i := range weight {
		if first != nil && slices.ContainsFunc(tiers[min(1, len(tiers)):], func(tier []int) bool {
			return slices.Contains(tier, first[i])
		}) {
			o.ranks[i] = []int{first[i]}
			held[first[i]] = append(held[first[i]], i)
			continue
		}
		free = append(free, i)
	}
	for _, tier := range tiers {
		o.spread(free, tier, first)
		first = nil
		for node, shards := range held {
			o.spread(shards, excluding(tier, node), nil)
		}
	}
	return o.ranks
}

type ordering struct {
	weight   [][]uint64
	maxRanks int
	ranks    [][]int
}

// spread appends nodes, which none of the shards has yet, to the ranks of the shards. fixed, if not nil, has the node
// of each shard that precedes all others.
func (o *ordering) spread(shards, nodes, fixed []int) {
	if len(shards) == 0 || len(nodes) == 0 || o.maxRanks > 0 && len(o.ranks[shards[0]]) >= o.maxRanks {
		return
	}
	if len(shards) == 1 && fixed == nil {
		s, n := shards[0], len(nodes)
		if o.maxRanks > 0 {
			n = min(n, o.maxRanks-len(o.ranks[s]))
		}
		o.ranks[s] = append(o.ranks[s], heaviest(o.weight[s], nodes, n)...)
		return
	}
	groups := make(map[int][]int)
	for i, node := range o.assignRank(shards, nodes, fixed) {
		groups[node] = append(groups[node], shards[i])
	}
	for _, node := range nodes {
		group := groups[node]
		if len(group) == 0 {
			continue
		}
		for _, s := range group {
			o.ranks[s] = append(o.ranks[s], node)
		}
		o.spread(group, excluding(nodes, node), nil)
	}
}

// assignRank assigns each shard one node: first the fixed ones, then the heaviest pairs until all nodes have the same
// load, and the remaining shards to at most one per node. So no node gets a shard if it then has more than one more
// than any other, and adding or removing a node changes few pairs.
func (o *ordering) assignRank(shards, nodes, fixed []int) []int {
	type pair struct {
		weight      uint64
		shard, node int // index in shards; node
	}
	got := make([]int, len(shards))
	load := make(map[int]int, len(shards))
	waiting := len(shards)
	for i := range got {
		got[i] = noMember
		if fixed != nil && slices.Contains(nodes, fixed[shards[i]]) {
			got[i] = fixed[shards[i]]
			load[got[i]]++
			waiting--
		}
	}
	// With as many candidate nodes per shard as there are shards, no shard runs out of candidates.
	enough := min(len(nodes), len(shards))
	pairs := make([]pair, 0, waiting*enough)
	for i, s := range shards {
		if got[i] != noMember {
			continue
		}
		for _, n := range heaviest(o.weight[s], nodes, enough) {
			pairs = append(pairs, pair{o.weight[s][n], i, n})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.shard, b.shard), cmp.Compare(a.node, b.node))
	})
	even := evenLoad(load, nodes, waiting)
	for _, limit := range []int{even, even + 1} {
		for _, p := range pairs {
			if got[p.shard] == noMember && load[p.node] < limit {
				got[p.shard] = p.node
				load[p.node]++
			}
		}
	}
	return got
}

// evenLoad returns the highest load that all nodes can reach with more additional shards.
func evenLoad(load map[int]int, nodes []int, more int) int {
	for l := 0; ; l++ {
		missing := 0
		for _, n := range nodes {
			missing += max(0, l+1-load[n])
		}
		if missing > more {
			return l
		}
	}
}

// heaviest returns the n heaviest nodes, heaviest first.
func heaviest(weight []uint64, nodes []int, n int) []int {
	byWeight := func(a, b int) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) }
	if n > len(nodes)/4 {
		return slices.SortedFunc(slices.Values(nodes), byWeight)[:n]
	}
	top := make([]int, 0, n+1)
	for _, node := range nodes {
		if len(top) == n && byWeight(top[n-1], node) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, node, byWeight)
		top = slices.Insert(top, at, node)
		top = top[:min(n, len(top))]
	}
	return top
}

func excluding(list []int, x int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(y int) bool { return x == y })
}
