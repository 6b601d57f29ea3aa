// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// onBrEx makes the domain of a snapshot be on the bridge of OVN-Kubernetes' own gateway. The flows for the first
// address are stale on some nodes, and were on others.
func onBrEx(w *world.Snapshot, stale, recently []string) {
	w.Bridges = map[string]world.Bridges{}
	w.Domains[0].RecentlyStale = map[string]time.Time{}
	for _, n := range w.Nodes {
		n.GatewayBridge = "br-ex"
		if n.Agent != nil {
			n.Agent.Bridges = world.Bridges{"physnet": "br-ex"}
		}
		w.Bridges[n.Chassis] = world.Bridges{"physnet": "br-ex"}
		worldtest.ReportStale(n)
		if slices.Contains(stale, n.Name) {
			worldtest.ReportStale(n, w.Services[0].Given[0].String())
		}
	}
	for _, name := range recently {
		w.Domains[0].RecentlyStale[name] = time.Unix(2000, 0)
	}
}

// A gateway whose flows were stale a short while ago works: it takes the shards of one that drains. It takes none of
// one that works, or whose flows are stale.
func TestRecentlyStaleGatewaysWork(t *testing.T) {
	for _, c := range []struct {
		draining, stale, recently, want string
		allDraining                     bool
	}{
		{draining: "n1", recently: "n2", want: "n2"},
		{draining: "n1", recently: "n1 n2", want: "n2"},
		{draining: "n1", stale: "n1", recently: "n2", want: "n2"},
		{draining: "n1", stale: "n2", want: "n1", allDraining: true},
		{draining: "n1 n2", recently: "n1 n2", want: "n1", allDraining: true},
		{draining: "n2", stale: "n1", want: "n1", allDraining: true},
		{recently: "n1 n2", want: "n1"},
		{stale: "n1", recently: "n2", want: "n1"},
	} {
		for _, preempt := range []bool{false, true} {
			w := zoned()
			for _, n := range w.Nodes {
				n.Zone = ""
				if strings.Contains(c.draining, n.Name) {
					n.Draining = "a label"
				}
			}
			w.Cluster.NoDatabase = false
			w.Nodes, w.Domains[0].Nodes, w.Domains[0].Shards = w.Nodes[:2], []string{"n1", "n2"}, 1
			w.Domains[0].Preempt, w.Domains[0].Preferred = preempt, []world.Preference{{Weight: 1, Nodes: []string{"n1"}}}
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n1", Settled: true,
				Order: []string{"n1", "n2"}}}
			onBrEx(w, strings.Fields(c.stale), strings.Fields(c.recently))
			d := place.Compute(w).Domains[0]
			if got := d.Shards[0].Gateways[0].Node; got != c.want || d.AllDraining != c.allDraining {
				t.Errorf("%+v, preempt %t: first gateway %s, AllDraining %t", c, preempt, got, d.AllDraining)
			}
		}
	}
}

// A claim that has not settled may be forged, also if the flows of the first gateway were stale a short while ago. It
// takes no shards from one whose agent is silent, and does not attract those of one that drains.
func TestForgedClaimsDoNotAttractShardsOfRecentlyStaleGateways(t *testing.T) {
	for want, change := range map[string]func(*world.Node){
		"map[n1:8]":      func(n *world.Node) { n.Agent.Silent = true },
		"map[n2:4 n3:4]": func(n *world.Node) { n.Draining = "a label" },
	} {
		w := zoned("n1", "n2", "n3")
		onBrEx(w, nil, []string{"n1"})
		change(w.Nodes[0])
		w.ShardStates = map[world.ShardID]world.ShardState{}
		for i := range 8 {
			w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{Active: "n3",
				Order: []string{"n1", "n2", "n3"}}
		}
		first := map[string]int{}
		for _, s := range place.Compute(w).Domains[0].Shards {
			first[s.Gateways[0].Node]++
		}
		if got := fmt.Sprint(first); got != want {
			t.Errorf("first gateways %s, want %s", got, want)
		}
	}
}

// What most addresses of a domain are does not depend on how many Services share one, and not on those that say nothing
// about the bridge. An address whose status can't be rewritten is one of them.
func TestMostAddressesAreStaleWhateverServicesShareThem(t *testing.T) {
	addr := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	for _, c := range []struct {
		name                                string
		addrs, stale, notRepaired, notWrote string
		want                                bool
	}{
		{name: "three Services share a stale address", addrs: "1 1 1 2 3", stale: "1", notRepaired: "1"},
		{name: "three Services share a sound address", addrs: "1 1 1 2 3", stale: "2 3", notRepaired: "2 3", want: true},
		{name: "no status can be rewritten", addrs: "1 2 3", stale: "1 2 3", notWrote: "1 2 3", want: true},
		{name: "one status can't be rewritten", addrs: "1 2 3", stale: "1", notWrote: "1"},
		{name: "none repairs the flow or can be rewritten", addrs: "1 2 3", stale: "1 2", notRepaired: "1", notWrote: "2",
			want: true},
	} {
		var services []*world.Service
		for i, last := range strings.Fields(c.addrs) {
			s := worldtest.Service(world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, i+1)
			s.Assigned = []netip.Addr{addr("10.50.0.10" + last)}
			s.Given = s.Assigned
			services = append(services, s)
		}
		w := worldtest.OnBrEx(services...)
		set := func(lasts string) (names []string, set map[netip.Addr]bool) {
			set = map[netip.Addr]bool{}
			for _, last := range strings.Fields(lasts) {
				names = append(names, "10.50.0.10"+last)
				set[addr("10.50.0.10"+last)] = true
			}
			return names, set
		}
		stale, _ := set(c.stale)
		worldtest.ReportStale(w.Nodes[0], stale...)
		_, w.NotRepaired = set(c.notRepaired)
		_, w.NotRewritten = set(c.notWrote)
		if got := place.Compute(w).Domains[0].Stale["n1"]; (got != "") != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
