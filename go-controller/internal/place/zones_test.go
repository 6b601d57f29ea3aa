// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// zoned returns a snapshot with interconnect, in which agents run on the named nodes and all addresses of a pool of
// eight are in use, on a domain of eight shards.
func zoned(agents ...string) *world.Snapshot {
	var services []*world.Service
	addr := netip.MustParseAddr("10.50.0.100")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s := worldtest.Service(world.Key{Namespace: "shop", Name: name}, len(services)+1)
		s.Assigned, s.Given = []netip.Addr{addr}, []netip.Addr{addr}
		services, addr = append(services, s), addr.Next()
	}
	w := worldtest.Small(8, services...)
	w.Cluster.NoDatabase = true
	w.Domains[0].Shards = 8
	for _, n := range w.Nodes {
		n.Zone = n.Name
		if slices.Contains(agents, n.Name) {
			n.Agent = &world.ZoneAgent{Bridges: world.Bridges{"physnet": "br-p"}}
			w.Bridges = map[string]world.Bridges{n.Chassis: n.Agent.Bridges}
		}
	}
	return w
}

// ordinalsOf returns the ordinals of the shards with addresses.
func ordinalsOf(w *world.Snapshot) map[world.ShardID]int {
	l := place.Compute(w)
	f := l.Topology(w, l.Place(w, ipam.Allocate(w, l.ShardOf), nil))
	out := map[world.ShardID]int{}
	for _, s := range f.Domains[0].Shards {
		if len(s.Anchors) > 0 {
			out[s.ID] = s.Ordinal
		}
	}
	return out
}

func TestShardsKeepTheirOrdinals(t *testing.T) {
	w := zoned("n1", "n2", "n3")
	first := ordinalsOf(w)
	if len(first) < 3 {
		t.Fatalf("%d shards have addresses; the test needs 3", len(first))
	}
	got := slices.Sorted(maps.Values(first))
	for i, n := range got {
		if i != n {
			t.Fatalf("ordinals %v are not the lowest", got)
		}
	}
	// A shard that is in use for the first time gets a free ordinal, and the others keep theirs.
	shards := slices.SortedFunc(maps.Keys(first), world.ShardID.Compare)
	w.Ordinals = maps.Clone(first)
	delete(w.Ordinals, shards[0])
	w.Ordinals[shards[1]] = 200
	again := ordinalsOf(w)
	for _, id := range shards[2:] {
		if again[id] != first[id] {
			t.Errorf("shard %v: %d, was %d", id, again[id], first[id])
		}
	}
	if again[shards[1]] != 200 || slices.Contains(slices.Collect(maps.Values(w.Ordinals)), again[shards[0]]) {
		t.Errorf("%v from %v", again, w.Ordinals)
	}
	// Of two shards with the same ordinal, the first keeps it.
	w.Ordinals = map[world.ShardID]int{shards[0]: 7, shards[1]: 7, shards[2]: -1}
	again = ordinalsOf(w)
	if again[shards[0]] != 7 || again[shards[1]] == 7 || again[shards[2]] < 0 {
		t.Errorf("%v from %v", again, w.Ordinals)
	}
}

func TestShardsWithoutOrdinalSaySo(t *testing.T) {
	w := zoned("n1", "n2", "n3")
	w.Ordinals = map[world.ShardID]int{}
	for i := range world.MaxOrdinals {
		w.Ordinals[world.ShardID{Domain: "other", Index: i}] = i // of no domain: free
	}
	for id, n := range ordinalsOf(w) {
		if n == place.NoOrdinal {
			t.Errorf("shard %v has no ordinal though no domain uses one", id)
		}
	}
}

// Pods of a node without an agent could not reply: no process programs the zone of the node.
func TestNodesWithoutAgentsCarryNothing(t *testing.T) {
	w := zoned("n1", "n2")
	l := place.Compute(w)
	d := l.Domains[0]
	if len(d.Excluded) != 1 || d.Excluded[0].Node != "n3" || d.Excluded[0].Reason != place.ReasonNoAgent {
		t.Errorf("excluded: %+v", d.Excluded)
	}
	far := w.Nodes[2].PodSubnets[0].Addr().Next().Next()
	w.Services[0].Slices[0].Endpoints = append(w.Services[0].Slices[0].Endpoints,
		world.Endpoint{Addr: far, Node: "n3", Ready: true, Serving: true})
	p := plan.For(w.Services[0], []plan.VIP{{Addr: w.Services[0].Assigned[0]}}, plan.NewReachability(w))
	if !slices.Equal(p.Unreachable, []netip.Addr{far}) || len(p.Listeners[0].Backends) != 1 {
		t.Errorf("unreachable %v, backends %v", p.Unreachable, p.Listeners[0].Backends)
	}
}

// A shard has a port where OVN-Kubernetes' shared gateway sends the packets to Services. A guard must have seen OVN's
// port for requests on the bridge. A VLAN would be lost on that way.
func TestSharedGatewayBridgeIsServed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world.Snapshot)
		want   place.Reason // why n1 is excluded, empty if it is not
	}{
		"with its port": {func(*world.Snapshot) {}, ""},
		"no guard":      {func(w *world.Snapshot) { w.Nodes[0].Localnets = nil }, place.ReasonNoGuard},
		"no port yet": {func(w *world.Snapshot) { w.Nodes[0].Localnets = map[string]world.Localnet{} },
			place.ReasonPortMissing},
		"a VLAN": {func(w *world.Snapshot) { w.Domains[0].VLAN = 7 }, place.ReasonSharedGateway},
		"central mode": {func(w *world.Snapshot) {
			w.Cluster.NoDatabase = false
			for _, n := range w.Nodes {
				n.Zone = ""
			}
		}, ""},
	} {
		w := zoned("n1", "n2", "n3")
		w.Bridges = map[string]world.Bridges{}
		for _, n := range w.Nodes {
			n.GatewayBridge, n.SharedGateway = "br-ex", true
			n.Localnets = map[string]world.Localnet{plan.LocalnetPort("lan"): {Bridge: "br-ex"}}
			w.Bridges[n.Chassis] = world.Bridges{"physnet": "br-ex"}
			n.Agent.Bridges = w.Bridges[n.Chassis]
		}
		c.change(w)
		var got place.Reason
		for _, left := range place.Compute(w).Domains[0].Excluded {
			if left.Node == "n1" {
				got = left.Reason
			}
		}
		if got != c.want {
			t.Errorf("%s: n1 is excluded with reason %q, want %q", name, got, c.want)
		}
	}
}

// A gateway whose agent stopped reporting keeps its shards and gets no new ones.
func TestSilentAgentsGetNoNewShards(t *testing.T) {
	w := zoned("n1", "n2", "n3")
	w.Nodes[0].Agent.Silent = true
	used := world.ShardID{Domain: "lan", Index: 3}
	w.ShardStates = map[world.ShardID]world.ShardState{
		used: {Active: "n1", Settled: true, Order: []string{"n1"}},
	}
	for _, s := range place.Compute(w).Domains[0].Shards {
		on := slices.ContainsFunc(s.Gateways, func(g plan.Gateway) bool { return g.Node == "n1" })
		if on != (s.ID == used) || len(s.Gateways) < 2 {
			t.Errorf("shard %v: gateways %v", s.ID, s.Gateways)
		}
	}
	for _, n := range w.Nodes {
		n.Agent.Silent = true
	}
	for _, s := range place.Compute(w).Domains[0].Shards {
		if len(s.Gateways) != 3 {
			t.Errorf("no agent reports, shard %v: gateways %v", s.ID, s.Gateways)
		}
	}
}

// A shard does not move to a gateway whose agent is silent: its zone would not claim the shard, and the others would
// leave it to that zone. The active gateway does not learn of a move while its own agent is silent.
func TestShardsDoNotMoveToOrFromSilentAgents(t *testing.T) {
	firsts := func(change func(*world.Snapshot)) string {
		w := zoned("n1", "n2", "n3")
		w.ShardStates = map[world.ShardID]world.ShardState{}
		for i := range 8 {
			w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{Active: "n1", Settled: true,
				Order: []string{"n1", "n2", "n3"}}
		}
		change(w)
		count := map[string]int{}
		for _, s := range place.Compute(w).Domains[0].Shards {
			count[s.Gateways[0].Node]++
		}
		return fmt.Sprint(count)
	}
	for name, c := range map[string]struct {
		change func(*world.Snapshot)
		want   string
	}{
		"the active gateway drains": {func(w *world.Snapshot) { w.Nodes[0].Draining = "a label" }, "map[n2:4 n3:4]"},
		"it drains, and n2 is silent": {func(w *world.Snapshot) {
			w.Nodes[0].Draining, w.Nodes[1].Agent.Silent = "a label", true
		}, "map[n3:8]"},
		"it drains, and all others are silent": {func(w *world.Snapshot) {
			w.Nodes[0].Draining, w.Nodes[1].Agent.Silent, w.Nodes[2].Agent.Silent = "a label", true, true
		}, "map[n1:8]"},
		"it has a fault, and all others are silent": {func(w *world.Snapshot) {
			w.Nodes[0].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultUplink, Message: "uplink down"}}
			w.Nodes[1].Agent.Silent, w.Nodes[2].Agent.Silent = true, true
		}, "map[n2:4 n3:4]"},
		"it drains and is silent": {func(w *world.Snapshot) {
			w.Nodes[0].Draining, w.Nodes[0].Agent.Silent = "a label", true
		}, "map[n1:8]"},
		"it is silent and has a fault": {func(w *world.Snapshot) {
			w.Nodes[0].Agent.Silent = true
			w.Nodes[0].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultUplink, Message: "uplink down"}}
		}, "map[n2:4 n3:4]"},
		"all are silent, and it drains": {func(w *world.Snapshot) {
			w.Nodes[0].Draining = "a label"
			for _, n := range w.Nodes {
				n.Agent.Silent = true
			}
		}, "map[n1:8]"},
		"n2 does not claim its shards": {func(w *world.Snapshot) {
			w.Nodes[0].Draining = "a label"
			for i := range 8 {
				w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{Missed: []string{"n2"},
					Order: []string{"n2", "n3", "n1"}}
			}
		}, "map[n3:8]"},
		"n2 has not claimed its shards, and n1, which drains, has claimed them again": {func(w *world.Snapshot) {
			w.Nodes[0].Draining, w.Nodes[2].Draining = "a label", "a label"
			for id, state := range w.ShardStates {
				state.Missed = []string{"n2"}
				w.ShardStates[id] = state
			}
		}, "map[n1:8]"},
		"the only gateway does not claim its shards": {func(w *world.Snapshot) {
			w.Nodes = w.Nodes[:1]
			for i := range 8 {
				w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{Missed: []string{"n1"},
					Order: []string{"n1"}}
			}
		}, "map[n1:8]"},
	} {
		if got := firsts(c.change); got != c.want {
			t.Errorf("%s: first gateways %s, want %s", name, got, c.want)
		}
	}
}

func TestGatewaysThatDoNotClaimOrReportAreNamed(t *testing.T) {
	w := zoned("n1", "n2", "n3")
	warnings := func() string { return strings.Join(place.Compute(w).Domains[0].Warnings, "; ") }
	if got := warnings(); strings.Contains(got, "claim") || strings.Contains(got, "no agent") {
		t.Errorf("all work: %s", got)
	}
	w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan", Index: 3}: {Missed: []string{"n2"}}}
	w.Nodes[2].Agent.Silent = true
	for _, want := range []string{`node "n2" was the first gateway of shard 3 and did not claim it`,
		"no agent (ovnkube-slb node --enable-l2) reports from n3: "} {
		if got := warnings(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestInterconnectIsServedByAgentsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		w    *world.Snapshot
		want string
	}{
		"agents":    {zoned("n1"), ""},
		"no agents": {zoned(), "no node has an agent that programs it (ovnkube-slb node --enable-l2)"},
		"a database": {func() *world.Snapshot { w := zoned("n1"); w.Cluster.NoDatabase = false; return w }(),
			"--nb-address names one of them; leave it empty"},
	} {
		got := place.Compute(c.w).UnsupportedReason
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A gateway whose zone can't be changed would not learn that another has its shards, and would keep them: two would
// answer. It keeps them, but gets no others. If it can't serve either, they move nevertheless.
func TestAZoneThatCannotBeChangedKeepsItsShards(t *testing.T) {
	const why = "no database"
	draining := ""
	order := func(faults map[string]world.Fault) map[string][]int {
		w := zoned("n1", "n2", "n3")
		w.Nodes[0].Draining = draining
		w.ShardStates = map[world.ShardID]world.ShardState{}
		w.Nodes[0].Agent.Unwritable = why
		w.Nodes[0].Faults = faults
		for i := range 4 {
			w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{
				Active: w.Nodes[i%2].Name, Settled: true, Order: []string{w.Nodes[i%2].Name, w.Nodes[(i+1)%2].Name}}
		}
		byFirst := map[string][]int{}
		for _, d := range place.Compute(w).Domains {
			for _, s := range d.Shards {
				first := s.Gateways[0].Node
				byFirst[first] = append(byFirst[first], s.ID.Index)
				if last := s.Gateways[len(s.Gateways)-1].Node; s.ID.Index < 4 && first != "n1" && last != "n1" {
					t.Errorf("shard %d: the last gateway is %s", s.ID.Index, last)
				}
			}
		}
		return byFirst
	}
	unwritable := map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultUnwritable, Message: why}}
	if got := order(unwritable)["n1"]; !slices.Equal(got, []int{0, 2}) {
		t.Errorf("n1 is the first gateway of shards %v, want those that it has claimed, 0 and 2", got)
	}
	dead := map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultOVNController, Message: "ovn-controller is dead"}}
	if got := order(dead)["n1"]; len(got) > 0 {
		t.Errorf("n1 can't serve and is the first gateway of shards %v", got)
	}
	draining = "an administrator drains it"
	if got := order(unwritable)["n1"]; len(got) > 0 {
		t.Errorf("n1 is draining and is the first gateway of shards %v", got)
	}
}

// The interval of BFD that a domain wishes is not used if the cluster has too many nodes for it.
func TestSlowDetectionIsReported(t *testing.T) {
	w := zoned("n1", "n2", "n3")
	w.Domains[0].Detect = 200 * time.Millisecond
	warnings := func() string { return strings.Join(place.Compute(w).Domains[0].Warnings, "; ") }
	if got := warnings(); strings.Contains(got, "BFD every") || strings.Contains(got, "interval") {
		t.Errorf("few nodes: %s", got)
	}
	for i := len(w.Nodes); i < 2000; i++ {
		name := fmt.Sprint("n", i+1)
		w.Nodes = append(w.Nodes, &world.Node{Name: name, Chassis: "c-" + name, Zone: name})
	}
	if got, want := warnings(), "the interval of BFD between gateways and other nodes is 400ms instead of 200ms "+
		"(failover.detectInterval): with 2000 nodes, a gateway would exchange more than 10000 frames per second"; !strings.
		Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	w.Domains[0].Detect = time.Second
	if got := warnings(); strings.Contains(got, "interval") {
		t.Errorf("a slow interval: %s", got)
	}
}
