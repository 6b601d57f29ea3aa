// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The zone of the gateway that a shard moves to takes part in the move, and no other zone. A failover is no move: the
// gateway has claimed the shard before it becomes the first one.
func TestHandoversAreThoseToTheOwnNode(t *testing.T) {
	const c1, c2 = "chassis-n1", "chassis-n2"
	shard := world.ShardID{Domain: "lan"}
	for name, c := range map[string]struct {
		node     string
		gateways []string
		active   string
		state    world.ShardState
		want     world.Handover
	}{
		"published": {"n1", []string{"n1", "n2"}, "n2",
			world.ShardState{Order: []string{c2, c1}}, world.HandoverAwaited},
		"written": {"n1", []string{"n1", "n2"}, "n2",
			world.ShardState{Order: []string{c1, c2}, Handover: world.HandoverAwaited}, world.HandoverAwaited},
		"claimed": {"n1", []string{"n1", "n2"}, "n2",
			world.ShardState{Active: c1, Order: []string{c1, c2}, Handover: world.HandoverAwaited}, world.HandoverClaimed},
		"the claim is published": {"n1", []string{"n1", "n2"}, "n1",
			world.ShardState{Active: c1, Order: []string{c1, c2}, Handover: world.HandoverClaimed}, world.HandoverClaimed},
		"the claim has settled": {"n1", []string{"n1", "n2"}, "n1",
			world.ShardState{Active: c1, Order: []string{c1, c2}, Handover: world.HandoverClaimed, Settled: true},
			world.NoHandover},
		"at the gateway that hands over": {"n2", []string{"n1", "n2"}, "n2",
			world.ShardState{Active: c2, Order: []string{c2, c1}}, world.NoHandover},
		"the move was revoked": {"n1", []string{"n2", "n1"}, "n2",
			world.ShardState{Order: []string{c1, c2}, Handover: world.HandoverAwaited}, world.NoHandover},
		"a failover": {"n1", []string{"n2", "n1"}, "n2",
			world.ShardState{Active: c1, Order: []string{c2, c1}}, world.NoHandover},
		"a failover is confirmed": {"n1", []string{"n1", "n2"}, "n1",
			world.ShardState{Active: c1, Order: []string{c2, c1}}, world.NoHandover},
		"no active gateway is known": {"n1", []string{"n1", "n2"}, "",
			world.ShardState{Order: []string{c2, c1}}, world.NoHandover},
		"the active gateway was deleted": {"n1", []string{"n1", "n2"}, "gone",
			world.ShardState{Order: []string{c2, c1}}, world.NoHandover},
	} {
		p := small()
		p.domains["lan"].Status.Shards[0].Gateways, p.domains["lan"].Status.Shards[0].Active = c.gateways, c.active
		if got := p.handoversTo(c.node, map[world.ShardID]world.ShardState{shard: c.state})[shard]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got := p.handoversTo(c.node, nil); len(got) > 0 {
			t.Errorf("%s: %v without a state of the zone", name, got)
		}
	}
}

// The progress of a move reaches the rows of its shard only.
func TestHandoversArePlanned(t *testing.T) {
	p := small()
	p.handovers = map[world.ShardID]world.Handover{{Domain: "lan"}: world.HandoverClaimed}
	f, _, ok := p.desired("n1", world.Cluster{}, nil)
	if !ok || len(f.Domains[0].Shards) != 1 || f.Domains[0].Shards[0].Handover != world.HandoverClaimed {
		t.Errorf("%v %+v", ok, f)
	}
}
