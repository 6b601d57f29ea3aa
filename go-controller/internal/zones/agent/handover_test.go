// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
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

// In a planned move, the zones other than that of the gateway that the shard moves to write the order a moment later.
// Nothing else waits, and the move of a faulty gateway does not.
func TestOrdersOfPlannedMovesWait(t *testing.T) {
	draining := []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedDraining}}
	faulty := []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedFaulty}}
	for name, c := range map[string]struct {
		node     string
		active   string
		excluded []v1alpha1.ExcludedNode
		order    []string
		want     string // the first gateway after the change, and until the delay is over
	}{
		"at the gateway that drains":               {"n1", "n1", draining, []string{"n2", "n3", "n1"}, "n1"},
		"at another node":                          {"n4", "n1", draining, []string{"n2", "n3", "n1"}, "n1"},
		"at the gateway that the shard moves to":   {"n2", "n1", draining, []string{"n2", "n3", "n1"}, "n2"},
		"another gateway drains":                   {"n4", "n1", nil, []string{"n2", "n3", "n1"}, "n2"},
		"another gateway has claimed the shard":    {"n4", "n2", draining, []string{"n2", "n3", "n1"}, "n2"},
		"only the standby gateways change":         {"n4", "n1", draining, []string{"n1", "n3", "n2"}, "n1"},
		"the gateway is faulty":                    {"n4", "n1", faulty, []string{"n2", "n3", "n1"}, "n2"},
		"no gateway is active according to status": {"n4", "", draining, []string{"n2", "n3", "n1"}, "n2"},
	} {
		delay := orderDelay
		if c.node == "n1" {
			delay = releaseDelay
		}
		after := delay - time.Millisecond
		now := time.Now()
		p := small()
		p.now = func() time.Time { return now }
		for _, n := range []string{"n3", "n4"} {
			p.setNode(nil, node(n, n))
		}
		status := &p.domains["lan"].Status
		first := func() string {
			f, _, ok := p.desired(c.node, world.Cluster{}, nil)
			if !ok || len(f.Domains[0].Shards) != 1 {
				t.Fatalf("%s: %v %+v", name, ok, f)
			}
			return f.Domains[0].Shards[0].Gateways[0].Node
		}
		status.Shards[0].Gateways, status.Shards[0].Active = []string{"n1", "n2", "n3"}, "n1"
		if got := first(); got != "n1" {
			t.Errorf("%s: before: %s", name, got)
		}
		status.Shards[0].Gateways, status.Shards[0].Active, status.ExcludedNodes = c.order, c.active, c.excluded
		for range 2 {
			if got := first(); got != c.want || (len(p.deferred) > 0) != (c.want != c.order[0]) {
				t.Errorf("%s: %s, deferred %v; want %s", name, got, p.deferred, c.want)
			}
			now = now.Add(after)
			if got := first(); got != c.want {
				t.Errorf("%s: later: %s, want %s", name, got, c.want)
			}
			now = now.Add(-after)
		}
		now = now.Add(delay)
		if got := first(); got != c.order[0] || len(p.deferred) > 0 {
			t.Errorf("%s: at last: %s, deferred %v; want %s", name, got, p.deferred, c.order[0])
		}
	}
}

// The previous gateway keeps the shard for releaseDelay, also after the claim of the new one has been published.
func TestThePreviousGatewayReleasesTheShardLast(t *testing.T) {
	n4 := node("n4", "n4")
	for node, want := range map[string]string{"n1": "n1", "n4": "n2"} {
		now := time.Now()
		p := small()
		p.now = func() time.Time { return now }
		p.setNode(nil, n4)
		status := &p.domains["lan"].Status
		first := func() string {
			f, _, ok := p.desired(node, world.Cluster{}, nil)
			if !ok || len(f.Domains[0].Shards) != 1 {
				t.Fatalf("%s: %v %+v", node, ok, f)
			}
			return f.Domains[0].Shards[0].Gateways[0].Node
		}
		status.Shards[0].Gateways, status.Shards[0].Active = []string{"n1", "n2"}, "n1"
		first()
		status.Shards[0].Gateways = []string{"n2", "n1"}
		status.ExcludedNodes = []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedDraining}}
		if got := first(); got != "n1" {
			t.Errorf("%s: %s, want n1 until the delay is over", node, got)
		}
		status.Shards[0].Active = "n2"
		if got := first(); got != want {
			t.Errorf("%s: the claim has been published: %s, want %s", node, got, want)
		}
		now = now.Add(releaseDelay)
		if got := first(); got != "n2" || len(p.deferred) > 0 {
			t.Errorf("%s: at last: %s, deferred %v; want n2", node, got, p.deferred)
		}
	}
}

// A move on request is one like that of a gateway that drains. Once it is over, a change of the order is not.
func TestOrdersOfRequestedMovesWait(t *testing.T) {
	for state, want := range map[string]string{v1alpha1.MoveInProgress: "n1", v1alpha1.MoveCompleted: "n2"} {
		p := small()
		p.setNode(nil, node("n4", "n4"))
		status := &p.domains["lan"].Status
		first := func() string {
			f, _, ok := p.desired("n4", world.Cluster{}, nil)
			if !ok || len(f.Domains[0].Shards) != 1 {
				t.Fatalf("%s: %v %+v", state, ok, f)
			}
			return f.Domains[0].Shards[0].Gateways[0].Node
		}
		status.Shards[0].Gateways, status.Shards[0].Active = []string{"n1", "n2"}, "n1"
		if got := first(); got != "n1" {
			t.Errorf("%s: before: %s", state, got)
		}
		status.Shards[0].Gateways, status.Move = []string{"n2", "n1"}, &v1alpha1.MoveStatus{State: state}
		if got := first(); got != want {
			t.Errorf("%s: %s, want %s", state, got, want)
		}
	}
}

// An order waits only while its shard is published and the zone is programmed. Afterwards, the agent has nothing to do.
func TestOrdersWaitNoLongerThanTheirShards(t *testing.T) {
	for name, change := range map[string]func(*published){
		"nothing changes":            func(*published) {},
		"the L2Domain is deleted":    func(p *published) { p.setDomain(p.domains["lan"], nil) },
		"the L2Domain is invalid":    func(p *published) { p.domains["lan"].Spec.Subnets[0].CIDR = "x"; p.whole = true },
		"the shard is not published": func(p *published) { p.domains["lan"].Status.Shards[0].Ordinal = nil; p.whole = true },
		"the shard has no gateways": func(p *published) {
			p.domains["lan"].Status.Shards[0].Gateways = []string{"gone"}
			p.whole = true
		},
		"the cluster subnets are unknown": func(p *published) { p.clusterSubnets, p.whole = nil, true },
		"the node has no zone":            func(p *published) { p.setNode(nil, node("n4", "global")) },
		"most nodes are in one zone": func(p *published) {
			for _, name := range []string{"n1", "n2", "n5", "n6"} {
				p.setNode(nil, node(name, "global"))
			}
		},
		"the Node is deleted": func(p *published) { p.setNode(node("n4", "n4"), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &Agent{options: Options{Node: "n4"}, wake: make(chan struct{}, 1), dataplane: unconnected(t),
					runner: loop.New(&recording.Dataplane{}, loop.Options{}), published: *small()}
				a.setNode(nil, node("n4", "n4"))
				status := &a.domains["lan"].Status
				status.Shards[0].Gateways, status.Shards[0].Active = []string{"n1", "n2"}, "n1"
				a.step()
				status.Shards[0].Gateways = []string{"n2", "n1"}
				status.ExcludedNodes = []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedDraining}}
				a.whole = true
				for range 3 { // one timer is enough for all of them
					a.step()
					a.whole = true
				}
				if len(a.deferred) != 1 {
					t.Fatalf("deferred %v, want one shard", a.deferred)
				}
				change(&a.published)
				a.pace = pace{} // the rest is over
				a.step()
				steps := stepsWithin(a, time.Minute)
				if steps > 1 || len(a.deferred) > 0 {
					t.Errorf("%d steps in a minute, want at most one; deferred %v", steps, a.deferred)
				}
				if got := a.orders[world.ShardID{Domain: "lan"}]; name == "nothing changes" && (len(got) == 0 || got[0] != "n2") {
					t.Errorf("order %v, want that of the move", got)
				}
			})
		})
	}
}

// stepsWithin makes the steps that an agent is woken for, and returns their number.
func stepsWithin(a *Agent, duration time.Duration) (steps int) {
	end := time.After(duration)
	for {
		select {
		case <-a.wake:
			steps++
			a.step()
		case <-end:
			return steps
		}
	}
}

// Two moves that were published at different times each wait as long as one.
func TestOrdersOfSeveralMovesWaitOnTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{options: Options{Node: "n4"}, wake: make(chan struct{}, 1), dataplane: unconnected(t),
			runner: loop.New(&recording.Dataplane{}, loop.Options{}), published: *small()}
		a.setNode(nil, node("n4", "n4"))
		status := &a.domains["lan"].Status
		status.Shards[1].Ordinal = new(int32(6))
		status.ExcludedNodes = []v1alpha1.ExcludedNode{{Name: "n1", Reason: v1alpha1.ExcludedDraining}}
		order := func(shard int, gateways ...string) {
			status.Shards[shard].Gateways, status.Shards[shard].Active = gateways, "n1"
			a.whole = true
			a.step()
		}
		order(0, "n1", "n2")
		order(1, "n1", "n2")
		start := time.Now()
		order(0, "n2", "n1")
		<-time.After(orderDelay / 2)
		order(1, "n2", "n1")
		for shard, want := range []time.Duration{orderDelay, orderDelay * 3 / 2} {
			<-a.wake
			a.step()
			got := a.orders[world.ShardID{Domain: "lan", Index: shard}]
			if after := time.Since(start); after != want || got[0] != "n2" {
				t.Errorf("shard %d: %v after %v, want n2 after %v", shard, got, after, want)
			}
		}
	})
}
