// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"
)

// order gives each shard all the nodes by falling preference. At every rank the shards
// are dealt to the nodes evenly, and the shards of one node are dealt evenly to the
// others at the next rank, so that the shards of a gateway that fails spread out.
// weight has a row for each shard and in it one hash for each node; nodes are indices.
// Only the first most ranks are dealt; 0 deals all.
func order(weight [][]uint64, nodes []int, most int) [][]int {
	o := ordering{weight: weight, most: most, ranks: make([][]int, len(weight))}
	shards := make([]int, len(weight))
	for i := range shards {
		shards[i] = i
	}
	o.spread(shards, nodes)
	return o.ranks
}

type ordering struct {
	weight [][]uint64
	most   int
	ranks  [][]int
}

// spread appends nodes, which none of the shards has yet, to their ranks.
func (o *ordering) spread(shards, nodes []int) {
	if len(shards) == 0 || len(nodes) == 0 || o.most > 0 && len(o.ranks[shards[0]]) >= o.most {
		return
	}
	if len(shards) == 1 {
		s, n := shards[0], len(nodes)
		if o.most > 0 {
			n = min(n, o.most-len(o.ranks[s]))
		}
		o.ranks[s] = append(o.ranks[s], heaviest(o.weight[s], nodes, n)...)
		return
	}
	groups := make(map[int][]int)
	for i, node := range o.deal(shards, nodes) {
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
		o.spread(group, without(nodes, node))
	}
}

// deal gives each shard one node: the heaviest pairs first, each node its even share,
// and what is left over one each. A node more or less changes few pairs.
func (o *ordering) deal(shards, nodes []int) []int {
	type pair struct {
		weight      uint64
		shard, node int // position in shards; node
	}
	// With as many nodes at hand for each shard as there are shards, none runs out.
	enough := min(len(nodes), len(shards))
	pairs := make([]pair, 0, len(shards)*enough)
	for i, s := range shards {
		for _, n := range heaviest(o.weight[s], nodes, enough) {
			pairs = append(pairs, pair{o.weight[s][n], i, n})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.shard, b.shard), cmp.Compare(a.node, b.node))
	})

	got := make([]int, len(shards))
	for i := range got {
		got[i] = -1
	}
	load := make(map[int]int, len(shards))
	share := len(shards) / len(nodes)
	for _, limit := range []int{share, share + 1} {
		for _, p := range pairs {
			if got[p.shard] < 0 && load[p.node] < limit {
				got[p.shard] = p.node
				load[p.node]++
			}
		}
	}
	return got
}

// heaviest returns the n heaviest of the nodes, in order.
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

func without(list []int, x int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(y int) bool { return x == y })
}
