// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A silent gateway that the domain no longer selects keeps a shard that it has not released, in addition to
// gateways.max. What a node reports gives it no shard of another gateway.
func TestSilentGatewayThatIsNoLongerSelectedKeepsItsShard(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	for name, c := range map[string]struct {
		change func(n1 *world.Node, w *world.Snapshot, state *world.ShardState)
		held   bool
	}{
		"it is silent": {func(*world.Node, *world.Snapshot, *world.ShardState) {}, true},
		"it drains, too": {func(n1 *world.Node, _ *world.Snapshot, _ *world.ShardState) { n1.Draining = "a label" },
			true},
		"its claim is new": {func(_ *world.Node, _ *world.Snapshot, s *world.ShardState) { s.Settled = false }, true},
		"its agent reports": {func(n1 *world.Node, _ *world.Snapshot, _ *world.ShardState) { n1.Agent.Silent = false },
			false},
		"its zone can't be changed": {func(n1 *world.Node, _ *world.Snapshot, _ *world.ShardState) {
			n1.Agent.Silent, n1.Agent.Unwritable = false, "no database"
		}, false},
		"it has released the shard": {func(n1 *world.Node, _ *world.Snapshot, _ *world.ShardState) { n1.Agent.Claims = nil },
			false},
		"its kubelet is silent": {func(n1 *world.Node, _ *world.Snapshot, _ *world.ShardState) { n1.Unreachable = true },
			false},
		"its Node is deleted": {func(_ *world.Node, w *world.Snapshot, _ *world.ShardState) { w.Nodes = w.Nodes[1:] }, false},
		"another gateway has claimed the shard": {func(_ *world.Node, _ *world.Snapshot, s *world.ShardState) {
			s.Active, s.Settled = "n2", false
		}, false},
		"it was no gateway": {func(_ *world.Node, _ *world.Snapshot, s *world.ShardState) {
			s.Order = []string{"n2", "n3"}
		}, false},
		"it was not the first gateway, and its claim is disputed": {func(_ *world.Node, _ *world.Snapshot,
			s *world.ShardState) {
			s.Order, s.Settled = []string{"n2", "n1"}, false
		}, false},
		"it failed over to it": {func(_ *world.Node, _ *world.Snapshot, s *world.ShardState) {
			s.Order = []string{"n2", "n1"}
		}, true},
		"it is no longer attached": {func(n1 *world.Node, _ *world.Snapshot, _ *world.ShardState) {
			n1.Agent.Bridges = world.Bridges{"other": "br-p"}
		}, false},
		"central mode": {func(_ *world.Node, w *world.Snapshot, _ *world.ShardState) {
			w.Cluster.NoDatabase = false
			for _, n := range w.Nodes {
				n.Zone = ""
			}
		}, false},
	} {
		w := zoned("n1", "n2", "n3")
		d := w.Domains[0]
		d.Shards, d.Nodes, d.MaxGateways = 1, []string{"n2", "n3"}, 1
		d.Move = &world.MoveRequest{Node: "n2", Shards: []int{0}}
		n1 := w.Nodes[0]
		n1.Agent.Silent, n1.Agent.Claims = true, map[world.ShardID]time.Time{shard: time.Unix(1, 0)}
		state := world.ShardState{Active: "n1", Settled: true, Order: []string{"n1", "n2"}}
		c.change(n1, w, &state)
		w.ShardStates = map[world.ShardID]world.ShardState{shard: state}
		l := place.Compute(w)
		got := l.Domains[0]
		gateways := got.Shards[0].Gateways
		if held := gateways[0].Node == "n1"; held != c.held || got.IsHeld("n1") != c.held || got.IsHeld("n2") {
			t.Errorf("%s: gateways %v", name, gateways)
		}
		told := strings.Contains(strings.Join(got.Warnings, "; "), `node "n1" is no longer selected (spec.nodeSelectors) and `+
			`stays the first gateway of shard 0`)
		if told != c.held || (l.HeldText(shard) != "") != c.held || (got.Move.State == world.MoveFailed) != c.held {
			t.Errorf("%s: %s; the move: %+v", name, got.Warnings, got.Move)
		}
		if c.held && len(gateways) != 2 {
			t.Errorf("%s: gateways %v, want one besides n1", name, gateways)
		}
	}
}

// gateways.max does not cut off a silent gateway that has the shard.
func TestSilentGatewayStaysWithinGatewaysMax(t *testing.T) {
	w := zoned("n1", "n2", "n3")
	w.Domains[0].Shards, w.Domains[0].MaxGateways = 1, 1
	w.Nodes[0].Agent.Silent, w.Nodes[0].Draining = true, "a label"
	w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n1", Settled: true,
		Order: []string{"n2", "n3", "n1"}}}
	if got := place.Compute(w).Domains[0].Shards[0].Gateways[0].Node; got != "n1" {
		t.Errorf("the first gateway is %s", got)
	}
}

// A claim that has not settled does not take a shard from its first gateway of which only the agent is silent, unless
// that one has missed a claim: then it does not serve the shard, and the shard may be moved.
func TestUnsettledClaimAgainstSilentFirstGateway(t *testing.T) {
	for name, c := range map[string]struct {
		missed []string
		first  string
		move   world.MoveState
	}{
		"n1 has missed no claim": {nil, "n1", world.MoveFailed},
		"n1 has missed a claim":  {[]string{"n1"}, "n3", world.MoveInProgress},
	} {
		w := zoned("n1", "n2", "n3")
		w.Domains[0].Shards, w.Domains[0].Move = 1, &world.MoveRequest{Node: "n3", Shards: []int{0}}
		w.Nodes[0].Agent.Silent = true
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2", Missed: c.missed,
			Order: []string{"n1", "n2", "n3"}}}
		d := place.Compute(w).Domains[0]
		if got := d.Shards[0].Gateways[0].Node; got != c.first || d.Move.State != c.move {
			t.Errorf("%s: the first gateway is %s, the move is %s: %s", name, got, d.Move.State, d.Move.Message)
		}
	}
}
