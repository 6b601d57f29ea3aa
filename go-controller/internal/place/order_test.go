// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// weights returns the weights of the placement hash for one domain.
func weights(domain string, shards, nodes int) [][]uint64 {
	rows := make([][]uint64, shards)
	for i := range rows {
		for n := range nodes {
			rows[i] = append(rows[i], mix(fnv(seed(domain, i), fmt.Sprintf("node-%d", n))))
		}
	}
	return rows
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// unevenness returns by how much the counts of a list of nodes differ.
func unevenness(counts map[int]int, nodes []int) int {
	least, most := counts[nodes[0]], counts[nodes[0]]
	for _, n := range nodes {
		least, most = min(least, counts[n]), max(most, counts[n])
	}
	return most - least
}

// Each gateway is the first of about the same number of shards, and the shards of a gateway that fails move to
// different others.
func TestOrderFair(t *testing.T) {
	for shards := 1; shards <= 12; shards++ {
		for nodes := 2; nodes <= 10; nodes++ {
			ranks := order(weights("fair", shards, nodes), [][]int{upTo(nodes)}, nil, 0)
			first := map[int]int{}
			for _, r := range ranks {
				first[r[0]]++
				if sorted := slices.Sorted(slices.Values(r)); !slices.Equal(sorted, upTo(nodes)) {
					t.Fatalf("%d shards, %d nodes: order %v is not of all nodes", shards, nodes, r)
				}
			}
			if u := unevenness(first, upTo(nodes)); u > 1 {
				t.Errorf("%d shards, %d nodes: first gateways differ by %d: %v", shards, nodes, u, first)
			}
			for failed := range nodes {
				next := map[int]int{}
				for _, r := range ranks {
					if r[0] == failed {
						next[r[1]]++
					}
				}
				if u := unevenness(next, excluding(upTo(nodes), failed)); u > 1 {
					t.Errorf("%d shards, %d nodes: the shards of node %d go to %v", shards, nodes, failed, next)
				}
			}
		}
	}
}

// Gateways are added and removed at random, and every shard stays where it is if possible. A shard moves only if its
// gateway is removed, and to a gateway that has at most one shard more than any other afterwards. Then, too, the
// shards of a gateway that fails would move to different others.
func TestOrderKeepsAndSpreads(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for round := range 400 {
		shards, nodes := 1+r.IntN(12), 2+r.IntN(9)
		w := weights(fmt.Sprint("kept", round), shards, nodes)
		up := upTo(nodes)
		ranks := order(w, [][]int{up}, nil, 0)
		for range 12 {
			first := make([]int, shards)
			for i := range first {
				first[i] = ranks[i][0]
			}
			if gone := r.IntN(nodes); !slices.Contains(up, gone) {
				up = slices.Sorted(slices.Values(append(up, gone)))
			} else if len(up) > 1 {
				up = excluding(up, gone)
			}
			ranks = order(w, [][]int{up}, first, 0)
			expectKept(t, first, up, ranks)
		}
	}
}

func expectKept(t *testing.T, first, up []int, ranks [][]int) {
	t.Helper()
	load, dealt := map[int]int{}, map[int]bool{}
	for i, r := range ranks {
		load[r[0]]++
		if r[0] == first[i] {
			continue
		}
		if slices.Contains(up, first[i]) {
			t.Errorf("shard %d moves from %d to %d, and %v are up", i, first[i], r[0], up)
		}
		dealt[r[0]] = true
	}
	for node := range dealt {
		for _, other := range up {
			if load[node] > load[other]+1 {
				t.Errorf("node %d was dealt a shard and has %d, node %d has %d", node, load[node], other, load[other])
			}
		}
	}
	for _, failed := range up {
		next := map[int]int{}
		for _, r := range ranks {
			if r[0] == failed && len(r) > 1 {
				next[r[1]]++
			}
		}
		if others := excluding(up, failed); len(others) > 0 && unevenness(next, others) > 1 {
			t.Errorf("the shards of node %d go to %v", failed, next)
		}
	}
}

// Removing or adding a node changes the first gateway of few shards, except those that lost or gained their gateway.
func TestOrderStable(t *testing.T) {
	var moved, kept, worst int
	for domain := range 40 {
		for nodes := 3; nodes <= 10; nodes++ {
			w := weights(fmt.Sprint(domain), 8, nodes)
			all := order(w, [][]int{upTo(nodes)}, nil, 3)
			for gone := range nodes {
				here := 0
				for i, r := range order(w, [][]int{excluding(upTo(nodes), gone)}, nil, 3) {
					switch all[i][0] {
					case gone:
					case r[0]:
						kept++
					default:
						moved++
						here++
					}
				}
				worst = max(worst, here)
			}
		}
	}
	if share := float64(moved) / float64(moved+kept); share > 0.12 {
		t.Errorf("%.0f %% of the shards that could stay move when a node comes or goes, more than 12 %%", 100*share)
	}
	if worst > 4 {
		t.Errorf("%d of 8 shards that could stay move when one node comes or goes, more than 4", worst)
	}
}

// Nodes of a tier precede those of the next one, and each tier is fair. The shards that stay on a node of a later tier
// would move to different nodes of the first one.
func TestOrderPreferred(t *testing.T) {
	for shards := 2; shards <= 12; shards++ {
		tiers, staying := [][]int{{1, 3, 5}, {0, 4}, {2, 6}}, shards/2 // the first shards stay on node 6
		first := make([]int, shards)
		for i := range first {
			first[i] = noMember
			if i < staying {
				first[i] = 6
			}
		}
		counts, successors := map[int]int{}, map[int]int{}
		for i, r := range order(weights("preferred", shards, 7), tiers, first, 0) {
			if sorted := slices.Sorted(slices.Values(r)); !slices.Equal(sorted, upTo(7)) {
				t.Fatalf("order %v is not of all nodes", r)
			}
			if i >= staying {
				counts[r[0]]++
				expectTiers(t, r, tiers)
				continue
			}
			if r[0] != 6 {
				t.Errorf("shard %d moves from node 6: %v", i, r)
			}
			successors[r[1]]++
			expectTiers(t, r[1:], [][]int{tiers[0], tiers[1], {2}})
		}
		if u := max(unevenness(counts, tiers[0]), unevenness(successors, tiers[0])); u > 1 {
			t.Errorf("%d shards: first gateways %v, successors of node 6 %v", shards, counts, successors)
		}
	}
}

// expectTiers checks that an order consists of the nodes of each tier in turn.
func expectTiers(t *testing.T, order []int, tiers [][]int) {
	t.Helper()
	rest := order
	for _, tier := range tiers {
		if got := slices.Sorted(slices.Values(rest[:len(tier)])); !slices.Equal(got, tier) {
			t.Errorf("%v precede a tier that is preferred to them: %v", got, order)
		}
		rest = rest[len(tier):]
	}
}

func TestOrderBounded(t *testing.T) {
	w := weights("bounded", 8, 50)
	all := order(w, [][]int{upTo(50)}, nil, 0)
	for most := 1; most <= 50; most += 7 {
		for i, r := range order(w, [][]int{upTo(50)}, nil, most) {
			if !slices.Equal(r, all[i][:most]) {
				t.Errorf("the first %d gateways of shard %d are %v, want %v", most, i, r, all[i][:most])
			}
		}
	}
}

func TestHeaviest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n < 200; n++ {
		weight := make([]uint64, n)
		for i := range weight {
			weight[i] = r.Uint64N(uint64(n))
		}
		all := heaviest(weight, upTo(n), n)
		for _, k := range []int{1, n/5 + 1, n/2 + 1} {
			if got := heaviest(weight, upTo(n), min(k, n)); !slices.Equal(got, all[:min(k, n)]) {
				t.Fatalf("heaviest %d of %d are %v, want %v", k, n, got, all[:k])
			}
		}
	}
}

// The values of the hash itself. They must never change.
func TestHashPinned(t *testing.T) {
	for _, c := range []struct {
		domain, addr string
		index        int
		want         uint64
	}{
		{"office", "192.0.2.1", 0, 0x60aa0e8e06e732a4},
		{"office", "192.0.2.1", 7, 0x47c76dfece644fb9},
		{"lab", "2001:db8::1", 1, 0x8a8037fe4f4fa281},
	} {
		member := netip.MustParseAddr(c.addr).As16()
		if got := mix(fnv(seed(c.domain, c.index), member[:])); got != c.want {
			t.Errorf("hash of %s/%d %s is %#x, want %#x", c.domain, c.index, c.addr, got, c.want)
		}
	}
}

// Consecutive addresses spread evenly over the shards, and an additional shard takes only its share.
func TestHashEven(t *testing.T) {
	const shards, addrs = 8, 8000
	var seeds []uint64
	for i := range shards + 1 {
		seeds = append(seeds, seed("even", i))
	}
	count := make([]int, shards)
	var moved int
	a := netip.MustParseAddr("192.168.0.0")
	for range addrs {
		i := shardFor(seeds[:shards], a)
		count[i]++
		if j := shardFor(seeds, a); j != i {
			moved++
			if j != shards {
				t.Errorf("%s moves from shard %d to %d because shard %d came", a, i, j, shards)
			}
		}
		a = a.Next()
	}
	for i, n := range count {
		if n < addrs/shards*9/10 || n > addrs/shards*11/10 {
			t.Errorf("shard %d has %d of %d addresses", i, n, addrs)
		}
	}
	if share := addrs / (shards + 1); moved > share*11/10 {
		t.Errorf("%d addresses move to a new shard, its share is %d", moved, share)
	}
}
