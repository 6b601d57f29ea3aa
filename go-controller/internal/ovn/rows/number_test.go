// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/rowtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// There are numbers for 256 shards. One more shard has no rows, and shards that had a number keep it. Numbers that
// are out of range or assigned twice are ignored.
func TestNumbersOfShards(t *testing.T) {
	lay := func(count int, ordinals map[int]int) (joins map[string]int, numberless []world.ShardID) {
		d := plan.Domain{Name: "lan"}
		for i := range count {
			anchors := []netip.Prefix{netip.MustParsePrefix("10.50.0.50/24")}
			d.Shards = append(d.Shards, plan.Shard{ID: world.ShardID{Domain: "lan", Index: i}, Anchors: anchors})
		}
		facts := rows.Facts{Join: []netip.Prefix{netip.MustParsePrefix("100.64.0.1/16")}, Ordinals: map[world.ShardID]int{}}
		for index, n := range ordinals {
			facts.Ordinals[world.ShardID{Domain: "lan", Index: index}] = n
		}
		g, err := rows.NewBuilder(&plan.Topology{Domains: []plan.Domain{d}}, facts)
		if err != nil {
			t.Fatal(err)
		}
		joins = map[string]int{}
		for _, r := range builder(g) {
			if r.Table == rows.RouterPort && r.Columns["ha_chassis_group"] == nil {
				joins[rowtest.Value(r.Columns["networks"])]++
			}
		}
		return joins, g.ShardsWithoutOrdinal()
	}
	for _, c := range []struct {
		what     string
		count    int
		ordinals map[int]int
		without  []int
	}{
		{"all", 256, nil, nil},
		{"one too many", 257, nil, []int{256}},
		{"one too many, which had a number before", 257, map[int]int{256: 7}, []int{255}},
		{"numbers that cannot be, and one twice", 256, map[int]int{0: 256, 1: -1, 2: 9, 3: 9}, nil},
	} {
		joins, numberless := lay(c.count, c.ordinals)
		if len(joins) != c.count-len(c.without) || len(numberless) != len(c.without) {
			t.Errorf("%s: %d join addresses, without a number %v", c.what, len(joins), numberless)
		}
		for i, index := range c.without {
			if numberless[i].Index != index {
				t.Errorf("%s: without a number %v, want %v", c.what, numberless, c.without)
			}
		}
		for networks, n := range joins {
			if n > 1 {
				t.Errorf("%s: %d shards have %s", c.what, n, networks)
			}
		}
	}
}
