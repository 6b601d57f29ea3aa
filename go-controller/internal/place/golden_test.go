// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestGoldens(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) string {
		l := place.Compute(c.World)
		placements := l.Place(c.World, ipam.Allocate(c.World, l.ShardOf), nil)
		return layoutText(l, l.Topology(c.World, placements)) + placementsText(placements)
	})
}

func layoutText(l *place.Layout, f *plan.Topology) string {
	var out strings.Builder
	shards := map[world.ShardID]plan.Shard{}
	for _, d := range f.Domains {
		for _, s := range d.Shards {
			shards[s.ID] = s
		}
	}
	for _, d := range l.Domains {
		fmt.Fprintf(&out, "domain %s\n", d.Spec.Name)
		for _, s := range d.Shards {
			out.WriteString(shardText(s, shards[s.ID]))
		}
		for _, n := range d.Excluded {
			fmt.Fprintf(&out, "  excluded: %s (%s) %s\n", n.Node, n.Reason, n.Message)
		}
		for _, topology := range f.Domains {
			if topology.Name == d.Spec.Name && len(topology.Residents) > 0 {
				fmt.Fprintf(&out, "  residents: %s\n", strings.Join(topology.Residents, " "))
			}
		}
		if d.BlockedReason != "" {
			fmt.Fprintf(&out, "  waits: %s\n", d.BlockedReason)
		}
		if d.Move.State != "" {
			fmt.Fprintf(&out, "  move: %s: %s\n", d.Move.State, d.Move.Message)
		}
		for _, text := range slices.Concat(d.Spec.Problems, d.Problems) {
			fmt.Fprintf(&out, "  problem: %s\n", text)
		}
		for _, text := range slices.Concat(d.Warnings, d.Unmatched) {
			fmt.Fprintf(&out, "  remark: %s\n", text)
		}
	}
	return out.String()
}

func shardText(s place.Shard, planned plan.Shard) string {
	var out strings.Builder
	fmt.Fprintf(&out, "  shard %d:", s.ID.Index)
	for _, g := range s.Gateways {
		fmt.Fprintf(&out, " %s", g.Chassis)
	}
	for _, g := range s.Gateways {
		if g.SharedBridge {
			fmt.Fprintf(&out, ", %s on a shared bridge", g.Chassis)
		}
	}
	if a := planned.Anchors; len(a) > 0 {
		fmt.Fprintf(&out, ", anchors %v", a)
	}
	if h := planned.Handover; h != world.NoHandover {
		fmt.Fprintf(&out, ", handover %s", h)
	}
	return out.String() + "\n"
}

func placementsText(s *place.Placements) string {
	var out strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(s.Services), world.Key.Compare) {
		for _, placement := range s.Services[k] {
			if placement.Reason != "" {
				fmt.Fprintf(&out, "%s: %s (%s) %s\n", k, placement.Addr, placement.Reason, placement.Message)
				continue
			}
			fmt.Fprintf(&out, "%s: %s in %s/%d\n", k, placement.Addr, placement.Shard.Domain, placement.Shard.Index)
		}
	}
	return out.String()
}
