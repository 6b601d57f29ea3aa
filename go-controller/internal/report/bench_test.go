// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// large returns a snapshot of 5,000 Services with 20 endpoints each.
func large() *world.Snapshot {
	const services, endpoints = 5000, 20
	w := worldtest.Small(1)
	w.Pools[0].Ranges[0] = netipx.MustParseIPRange("10.50.0.0-10.50.255.254")
	w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	w.Domains[0].Shards = 8
	w.ShardStates = map[world.ShardID]world.ShardState{}
	for i := range 8 {
		w.ShardStates[world.ShardID{Domain: "lan", Index: i}] = world.ShardState{
			Active: "n1", Order: []string{"n1"},
		}
	}
	for i := range services {
		s := worldtest.Service(world.Key{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, i)
		s.Slices[0].Endpoints = nil
		for j := range endpoints {
			n := i*endpoints + j
			s.Slices[0].Endpoints = append(s.Slices[0].Endpoints, world.Endpoint{
				Addr: netip.AddrFrom4([4]byte{10, 244 + byte(n>>16), byte(n >> 8), byte(n)}), Ready: true, Serving: true})
		}
		w.Services = append(w.Services, s)
	}
	return w
}

// settled returns the state of a decision about a snapshot, whose statuses show all addresses.
func settled(m *decide.State, w *world.Snapshot) (*decide.Decision, Observed) {
	d := m.Decide(w)
	known := Observed{Synced: true, Programmed: map[world.Key]loop.Result{}}
	for _, s := range w.Services {
		s.Assigned = d.Allocation.Services[s.Key].Addrs
		known.Programmed[s.Key] = loop.Result{Key: s.Key, Plan: d.Plans[s.Key]}
	}
	return m.Decide(w), known
}

// BenchmarkAmendment creates a Service beside others where guards run, announces its address when it has been probed,
// and deletes it, with its statuses.
func BenchmarkAmendment(b *testing.B) {
	var m decide.State
	w := large()
	_, known := settled(&m, w)
	for _, n := range w.Nodes {
		n.Guarded = true
	}
	d := m.Decide(w)
	v := NewBuilder(d, known)
	n := 0
	for b.Loop() {
		n++
		s := worldtest.Service(world.Key{Namespace: "shop", Name: fmt.Sprintf("new-%d", n)}, n)
		a := m.AmendAll(d, map[world.Key]world.Change{s.Key: {Is: s}}, false)
		v.Service(s)
		if a.Incomplete {
			b.Fatal("not amended")
		}
		probed := map[string][]string{}
		for node, requests := range d.Probes {
			for _, r := range requests {
				probed[node] = append(probed[node], r.ID)
			}
		}
		if m.AmendProbed(d, probed, &a); a.Incomplete || a.Plans[s.Key] == nil {
			b.Fatal("not announced")
		}
		v.Service(s)
		if a := m.AmendAll(d, map[world.Key]world.Change{s.Key: {Was: s}}, false); a.Incomplete {
			b.Fatal("not deleted")
		}
	}
}

// BenchmarkPass runs a full decision and builds the statuses. One Service is new in each iteration.
func BenchmarkPass(b *testing.B) {
	var m decide.State
	w := large()
	_, known := settled(&m, w)
	var last Cache
	for b.Loop() {
		fresh := *w
		fresh.Services = slices.Clone(w.Services)
		s := *w.Services[0]
		s.Assigned = nil
		fresh.Services[0] = &s
		v := NewBuilder(m.Decide(&fresh), known)
		v.Services(&last)
		v.Pools()
		v.Domains()
	}
}
