// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// heldGateways returns the nodes that the domain no longer selects and that stay the first gateways of shards, by index
// of the shard: those whose agents are silent. Such a zone does not learn that the shard is to move, and goes on
// answering, so that two gateways would answer. It is the same for a node that drains (immovable).
//
// What a node reports must not give it a shard: only a gateway of the published order counts, and its claim only if no
// other gateway disputes it or if it is the first one. If another gateway has claimed the shard, BFD has shown to that
// one that the node is dead. A node whose kubelet is silent as well is lost.
func (d *Domain) heldGateways(
	nodes map[string]*world.Node, zones *world.Zones, w *world.Snapshot,
) map[int]*world.Node {
	held := map[int]*world.Node{}
	for i := range d.seeds {
		id := world.ShardID{Domain: d.Spec.Name, Index: i}
		c := w.ShardStates[id]
		n, rank := nodes[c.Active], slices.Index(c.Order, c.Active)
		switch {
		case n == nil, n.Agent == nil, rank < 0, rank > 0 && !c.Settled:
		case !n.Agent.Silent, n.Agent.Claims[id].IsZero(), n.Unreachable, slices.Contains(d.Spec.Nodes, n.Name):
		default:
			if reason, _ := d.admit(n, zones, w); reason == "" && d.fault(n) == n.Agent.Unwritable {
				held[i] = n
			}
		}
	}
	return held
}

// IsHeld reports whether a node is a gateway only because it has not released shards.
func (d *Domain) IsHeld(node string) bool {
	for _, n := range d.held {
		if n.Name == node {
			return true
		}
	}
	return false
}

// addHeld records the nodes that are gateways only because they have not released shards.
func (d *Domain) addHeld() {
	shards := map[string][]string{}
	for _, index := range slices.Sorted(maps.Keys(d.held)) {
		name := d.held[index].Name
		shards[name] = append(shards[name], strconv.Itoa(index))
	}
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		what := "shard " + shards[name][0]
		if len(shards[name]) > 1 {
			what = "shards " + strings.Join(shards[name], ", ")
		}
		d.Warnings = append(d.Warnings, heldText(name, what))
	}
}

// HeldText returns why a node that its domain no longer selects is the first gateway of a shard, or an empty string.
func (l *Layout) HeldText(shard world.ShardID) string {
	if d := l.domainByName(shard.Domain); d != nil && d.held[shard.Index] != nil {
		return heldText(d.held[shard.Index].Name, "shard "+strconv.Itoa(shard.Index))
	}
	return ""
}

func heldText(node, shards string) string {
	return fmt.Sprintf("node %q is no longer selected (spec.nodeSelectors) and stays the first gateway of %s: its agent "+
		"(ovnkube-slb node --enable-l2) does not report, and did not report a release", node, shards)
}
