// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// observed returns a snapshot of three nodes, of which n1 and n2 claim shard lan/0, with what a Publisher adds. change
// modifies the agents' reports.
func observed(change func(n1, n2 *world.ZoneAgent)) *world.Snapshot {
	now := time.Unix(1000, 0)
	shard := world.ShardID{Domain: "lan"}
	agent := func(claimed time.Time) *world.ZoneAgent {
		return &world.ZoneAgent{Bridges: world.Bridges{"physnet": "br-p"}, Applied: 7,
			Claims: map[world.ShardID]time.Time{shard: claimed}}
	}
	w := &world.Snapshot{Now: now,
		Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n2", "gone", "n1"}}}},
		Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Agent: agent(now.Add(-time.Hour))},
			{Name: "n2", Chassis: "c2", Agent: agent(now.Add(-time.Minute))}, {Name: "n3", Chassis: "c3"}}}
	change(w.Nodes[0].Agent, w.Nodes[1].Agent)
	p := New(Options{})
	p.store(&v1alpha1.ServicePlan{ObjectMeta: metav1.ObjectMeta{Name: "shop.web", ResourceVersion: "7"},
		Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: "web",
			VIPs: []v1alpha1.PlannedVIP{{Address: "10.50.0.100", L2Domain: "lan"}}}})
	p.Observe(w)
	return w
}

func TestOnlyGatewaysCarryShards(t *testing.T) {
	w := observed(func(n1, n2 *world.ZoneAgent) {
		alien := world.ShardID{Domain: "lan", Index: 1} // has no published gateways
		n1.Claims[alien], n2.Claims[alien] = time.Unix(900, 0), time.Unix(901, 0)
	})
	if len(w.ShardStates) != 1 {
		t.Errorf("%+v", w.ShardStates)
	}
}

func TestServicesAreAppliedWhereTheyAreCarried(t *testing.T) {
	key := world.Key{Namespace: "shop", Name: "web"}
	applied := map[world.Key][]netip.Addr{key: {netip.MustParseAddr("10.50.0.100")}}
	for name, c := range map[string]struct {
		change  func(n1, n2 *world.ZoneAgent)
		applied map[world.Key][]netip.Addr
		errors  map[world.Key]string
	}{
		"the active gateway has applied it": {change: func(n1, _ *world.ZoneAgent) { n1.Applied = 1 }, applied: applied},
		"only another has":                  {change: func(_, n2 *world.ZoneAgent) { n2.Applied = 6 }},
		"no active gateway, the first one has applied it": {change: func(n1, n2 *world.ZoneAgent) {
			n1.Claims, n2.Claims, n1.Applied = nil, nil, 1
		}, applied: applied},
		"no active gateway, only the second one has applied it": {change: func(n1, n2 *world.ZoneAgent) {
			n1.Claims, n2.Claims, n2.Applied = nil, nil, 1
		}},
		"the active gateway failed": {change: func(_, n2 *world.ZoneAgent) {
			n2.Failed = map[world.Key]string{key: "no room"}
		},
			errors: map[world.Key]string{key: "address 10.50.0.100: no room"}},
	} {
		w := observed(c.change)
		if diff := cmp.Diff(c.applied, w.Applied, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: applied: -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff(c.errors, w.ApplyErrors, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: errors: -want +got:\n%s", name, diff)
		}
	}
}

// What counts is the zone of the active gateway: clients don't reach the others.
func TestMisplacedFlowsOfActiveGatewaysAreReported(t *testing.T) {
	addr := netip.MustParseAddr("10.50.0.100")
	found := map[netip.Addr]bool{addr: true, netip.MustParseAddr("10.50.0.101"): true}
	if w := observed(func(n1, _ *world.ZoneAgent) { n1.Misplaced = found }); len(w.Misplaced) > 0 {
		t.Errorf("in the zone of another gateway: %v", w.Misplaced)
	}
	w := observed(func(_, n2 *world.ZoneAgent) { n2.Misplaced = found })
	if !w.Misplaced[addr] || len(w.Misplaced) != 1 {
		t.Errorf("in the zone of the active gateway: %v, want %s alone, which is in a plan", w.Misplaced, addr)
	}
}

func TestAZoneThatCannotBeProgrammedIsAFaultOfItsNode(t *testing.T) {
	w := observed(func(_, n2 *world.ZoneAgent) { n2.Problem = "no database" })
	if got := w.Nodes[1].Faults[world.EveryNetwork].Message; got != "no database" {
		t.Errorf("faults of n2: %v", w.Nodes[1].Faults)
	}
	if w.Nodes[0].Faults != nil {
		t.Errorf("faults of n1: %v", w.Nodes[0].Faults)
	}
}

func TestAZoneThatCannotBeChangedIsAFaultAfterThatOfTheGuard(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	w := observed(func(_, n2 *world.ZoneAgent) { n2.Unwritable = "no database" })
	if got := w.Nodes[1].Faults[world.EveryNetwork].Message; got != "no database" {
		t.Errorf("faults of n2: %v", w.Nodes[1].Faults)
	}
	if got := w.ShardStates[shard].Active; got != "n2" {
		t.Errorf("active: %s", got)
	}
}

// The first gateway of a shard with addresses that does not claim it comes after the others for a while, unless it
// claims it after all, or the shard loses its last address. The next one has as long. No gateway claims a shard without
// addresses.
func TestAGatewayThatDoesNotClaimItsShardHasMissedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changed atomic.Int32
		p := New(Options{Changed: func() { changed.Add(1) }})
		p.store(&v1alpha1.ServicePlan{ObjectMeta: metav1.ObjectMeta{Name: "shop.web", ResourceVersion: "7"},
			Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: "web",
				VIPs: []v1alpha1.PlannedVIP{{Address: "10.50.0.100", L2Domain: "lan"}}}})
		shard, unused := world.ShardID{Domain: "lan"}, world.ShardID{Domain: "lan", Index: 1}
		started := time.Now()
		check := func(when string, want, order []string, claims map[world.ShardID]time.Time) {
			t.Helper()
			w := &world.Snapshot{Now: time.Now(),
				Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: order, 1: order}}},
				Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Agent: &world.ZoneAgent{Claims: claims}},
					{Name: "n2", Chassis: "c2", Agent: &world.ZoneAgent{Started: started}}}}
			p.Observe(w)
			got := slices.Sorted(slices.Values(w.ShardStates[shard].Missed))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: have not claimed the shard: -want +got:\n%s", when, diff)
			}
			if got := w.ShardStates[unused].Missed; len(got) > 0 {
				t.Errorf("%s: %q has not claimed a shard without addresses", when, got)
			}
		}
		wait := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		ahead, behind := []string{"n1", "n2"}, []string{"n2", "n1"}
		claim := map[world.ShardID]time.Time{shard: time.Now()}
		check("claimed", nil, ahead, claim)
		wait(claimTime)
		check("claimed for long", nil, ahead, claim)
		check("released", nil, behind, nil)
		wait(claimTime - time.Second)
		check("almost too late", nil, behind, nil)
		changed.Store(0)
		wait(time.Second)
		if changed.Load() == 0 {
			t.Error("nothing wakes the controller")
		}
		check("too late", []string{"n2"}, behind, nil)
		check("another first gateway", []string{"n2"}, ahead, nil)
		wait(claimTime)
		check("it does not claim it either", []string{"n1", "n2"}, ahead, nil)
		check("it claims it at last", []string{"n2"}, ahead, claim)
		wait(missedTime - claimTime)
		check("the other may have it again", nil, ahead, claim)
		check("released", nil, behind, nil)
		wait(claimTime)
		check("too late", []string{"n2"}, behind, nil)
		check("claimed by the next", []string{"n2"}, ahead, claim)
		started = started.Add(time.Hour)
		check("its agent was restarted", nil, ahead, claim)
		check("released", nil, behind, nil)
		wait(claimTime)
		check("too late", []string{"n2"}, behind, nil)
		check("the shard has no addresses any more, or its domain is deleted", nil, nil, nil)
		check("it has an address again", nil, behind, nil)
	})
}

func TestUnknownBridgesAreNotNone(t *testing.T) {
	w := observed(func(n1, _ *world.ZoneAgent) { n1.Bridges = nil })
	if _, known := w.Bridges["c1"]; known {
		t.Errorf("bridges of c1: %v", w.Bridges)
	}
}

// A status that has seen a plan applied does not wait for changes of single backends. All others wait for the version
// that the zone must have.
func TestStatusesAwaitChangesThatTheyDependOn(t *testing.T) {
	synctest.Test(t, testStatusesAwaitChangesThatTheyDependOn) // timers of the publisher end with the test
}

func testStatusesAwaitChangesThatTheyDependOn(t *testing.T) {
	var changed atomic.Int32
	p := New(Options{Changed: func() { changed.Add(1) }})
	version := uint64(0)
	agents := map[string]*world.ZoneAgent{"n1": {}, "n2": {}}
	key := world.Key{Namespace: "shop", Name: "web"}
	order := []string{"n1", "n2"}
	shard := world.ShardID{Domain: "lan"}
	claim := func(node string, at int64) {
		agents[node].Claims = map[world.ShardID]time.Time{shard: time.Unix(at, 0)}
	}
	store := func(backends, draining int, affinity string) {
		version += 10
		p.store(&v1alpha1.ServicePlan{
			ObjectMeta: metav1.ObjectMeta{Name: "shop.web", UID: "1", ResourceVersion: strconv.FormatUint(version, 10)},
			Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: "web", SessionAffinity: affinity,
				VIPs: []v1alpha1.PlannedVIP{{Address: "10.50.0.100", L2Domain: "lan", Shard: int32(shard.Index)}},
				Listeners: []v1alpha1.PlannedListener{{Address: "10.50.0.100", Port: 80,
					Backends: make([]v1alpha1.PlannedBackend, backends),
					Draining: make([]v1alpha1.PlannedBackend, draining)}}}})
	}
	for i, step := range []struct {
		what string
		do   func()
		want bool
		// awaited is the version that is awaited afterwards, relative to the newest.
		awaited uint64
	}{
		{"new", func() { store(1, 0, "") }, false, 0},
		{"a backend more before it was applied", func() { store(2, 0, "") }, false, 0},
		{"all but that", func() { agents["n1"].Applied = version - 1 }, false, 0},
		{"applied", func() { agents["n1"].Applied = version }, true, 0},
		{"a backend less", func() { store(1, 1, "") }, true, 10},
		{"and again", func() { store(3, 0, "") }, true, 20},
		{"the zone can't be changed", func() { agents["n1"].Unwritable = "no database" }, false, 0},
		{"and can again", func() { agents["n1"].Unwritable = "" }, true, 0},
		{"another Service failed", func() { agents["n1"].Failed = map[world.Key]string{{Name: "x"}: "no room"} }, false, 0},
		{"not any more", func() { agents["n1"].Failed = nil }, true, 0},
		{"another gateway, which is behind", func() { order = []string{"n2", "n1"} }, false, 0},
		{"and is not", func() { agents["n2"].Applied = version }, true, 0},
		{"no backends", func() { store(0, 1, "") }, false, 0},
		{"applied", func() { agents["n2"].Applied = version }, true, 0},
		{"a backend", func() { store(1, 0, "") }, false, 0},
		{"applied", func() { agents["n2"].Applied = version }, true, 0},
		{"another affinity", func() { store(1, 0, "ClientIP") }, false, 0},
		{"failed", func() {
			agents["n2"].Applied, agents["n2"].Failed = version, map[world.Key]string{key: "no room"}
		}, false, 0},
		{"a backend more while failed", func() { store(2, 0, "ClientIP"); agents["n2"].Failed = nil }, false, 0},
		{"applied", func() { agents["n2"].Applied = version }, true, 0},
		{"a backend less, which fails for a while", func() {
			store(1, 0, "ClientIP")
			agents["n2"].Failed = map[world.Key]string{key: "no room"}
		}, false, 0},
		{"and is pending again", func() { agents["n2"].Failed = nil }, false, 0},
		{"applied", func() { agents["n2"].Applied = version }, true, 0},
		{"a backend more", func() { store(2, 0, "ClientIP") }, true, 10},
		{"claimed again, by a zone that may have lost its rows", func() { claim("n2", 1) }, false, 0},
		{"applied", func() { agents["n2"].Applied = version }, true, 0},
		{"a backend less", func() { store(1, 0, "ClientIP") }, true, 10},
		{"the same node in another shard", func() { shard.Index = 1; store(1, 0, "ClientIP") }, false, 0},
	} {
		step.do()
		w := &world.Snapshot{
			Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: order, 1: order}}},
			Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Agent: agents["n1"]},
				{Name: "n2", Chassis: "c2", Agent: agents["n2"]}}}
		before, passes := p.Awaited(), changed.Load()
		p.Observe(w)
		if got := len(w.Applied[key]) == 1; got != step.want {
			t.Errorf("step %d, %s: applied %t, want %t", i, step.what, got, step.want)
		}
		if p.Awaited() != version-step.awaited {
			t.Errorf("step %d, %s: version %d is awaited, want %d", i, step.what, p.Awaited(), version-step.awaited)
		}
		if again := changed.Load() != passes; again != (p.Awaited() != before) {
			t.Errorf("step %d, %s: another pass %t", i, step.what, again)
		}
	}
	p.forget("shop.web")
	if len(p.confirmed) != 0 {
		t.Errorf("left: %v", p.confirmed)
	}
}
