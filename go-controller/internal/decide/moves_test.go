// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// moving returns snapshots of a domain with one shard, and with a request to move it.
func moving(text, to string) func(seconds int, active string, order ...string) *world.Snapshot {
	return func(seconds int, active string, order ...string) *world.Snapshot {
		w := worldtest.Small(1, worldtest.Service(web, 1))
		w.Now = time.Unix(int64(1000+seconds), 0)
		w.Domains[0].Move = &world.MoveRequest{Text: text, Node: to, Shards: []int{0}}
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: active, Settled: true, Order: order}}
		return w
	}
}

func expectMove(t *testing.T, d *Decision, first string, state world.MoveState) {
	t.Helper()
	domain := d.Layout.Domains[0]
	if got := domain.Shards[0].Gateways[0].Node; got != first || domain.Move.State != state {
		t.Errorf("%s is first, the request is %+v; want %s and %s", got, domain.Move, first, state)
	}
}

// A request that was completed moves nothing back when its node fails and returns, although no status shows yet that it
// was completed.
func TestCompletedMoveIsNotRepeated(t *testing.T) {
	var m State
	at := moving("a", "n2")
	expectMove(t, m.Decide(at(0, "n1", "n1", "n2", "n3")), "n2", world.MoveInProgress)
	expectMove(t, m.Decide(at(1, "n1", "n2", "n1", "n3")), "n2", world.MoveInProgress)
	done := m.Decide(at(2, "n2", "n2", "n1", "n3"))
	expectMove(t, done, "n2", world.MoveCompleted)
	failed := at(3, "n3", "n2", "n1", "n3")
	expectMove(t, m.Decide(failed), "n3", world.MoveCompleted)
	if failed.Domains[0].Moved.Text != "" {
		t.Error("the snapshot was changed")
	}
	// A process that starts now has the status.
	restarted := at(4, "n3", "n3", "n2", "n1")
	restarted.Domains[0].Moved = done.Layout.Domains[0].Move
	var started State
	expectMove(t, started.Decide(restarted), "n3", world.MoveCompleted)
	// The same move with another text is a new request.
	again := moving("b", "n2")
	expectMove(t, m.Decide(again(5, "n3", "n3", "n2", "n1")), "n2", world.MoveInProgress)
}

// A request fails if its node does not become active in time. From then on the active gateway is the first one again,
// and the node does not get the shard later.
func TestMoveExpires(t *testing.T) {
	var m State
	at := moving("a", "n2")
	before := m.Decide(at(0, "n1", "n1", "n2", "n3"))
	if want := time.Unix(1000, 0).Add(world.MoveTime); !before.Due.Equal(want) {
		t.Errorf("the next pass is due at %s, want %s", before.Due, want)
	}
	expectMove(t, m.Decide(at(29, "n1", "n2", "n1", "n3")), "n2", world.MoveInProgress)
	after := m.Decide(at(30, "n1", "n2", "n1", "n3"))
	expectMove(t, after, "n1", world.MoveFailed)
	if !after.Due.IsZero() {
		t.Errorf("another pass is due at %s, want none", after.Due)
	}
	expectMove(t, m.Decide(at(31, "n1", "n1", "n2", "n3")), "n1", world.MoveFailed)
	// Without the annotation, nothing is left of the request.
	none := at(32, "n1", "n1", "n2", "n3")
	none.Domains[0].Move = nil
	expectMove(t, m.Decide(none), "n1", "")
	expectMove(t, m.Decide(at(33, "n1", "n1", "n2", "n3")), "n2", world.MoveInProgress)
}

// A request whose node drains or fails before it is active is over: it has no effect when the node is fit again.
func TestMoveFailsWithItsNode(t *testing.T) {
	var m State
	at := moving("a", "n2")
	expectMove(t, m.Decide(at(0, "n1", "n1", "n2", "n3")), "n2", world.MoveInProgress)
	faulty := at(1, "n1", "n2", "n1", "n3")
	faulty.Nodes[1].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultUplink, Message: "no carrier"}}
	expectMove(t, m.Decide(faulty), "n1", world.MoveFailed)
	expectMove(t, m.Decide(at(2, "n1", "n1", "n3", "n2")), "n1", world.MoveFailed)
}

// A node that is not a gateway of the shard yet joins its group as the second one, so that OVN has set it up when it
// becomes the first. The gateway that it replaces stays in the group until then, beyond gateways.max.
func TestMoveJoinsTheGroupFirst(t *testing.T) {
	var m State
	at := func(seconds int, order ...string) *world.Snapshot {
		w := moving("a", "n2")(seconds, "n1", order...)
		w.Domains[0].MaxGateways = 1
		return w
	}
	expect := func(d *Decision, due int, gateways ...string) {
		t.Helper()
		var got []string
		for _, g := range d.Layout.Domains[0].Shards[0].Gateways {
			got = append(got, g.Node)
		}
		if want := time.Unix(int64(1000+due), 0); !slices.Equal(got, gateways) || !d.Due.Equal(want) {
			t.Errorf("gateways %v, next pass at %s; want %v and %s", got, d.Due, gateways, want)
		}
	}
	expect(m.Decide(at(0, "n1")), 30, "n1", "n2")
	expect(m.Decide(at(1, "n1", "n2")), 4, "n1", "n2")
	expect(m.Decide(at(3, "n1", "n2")), 4, "n1", "n2")
	expect(m.Decide(at(4, "n1", "n2")), 30, "n2", "n1")
}
