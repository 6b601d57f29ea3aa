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
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world/worldtest"
)

// BenchmarkPass runs a full decision and builds the statuses for 5,000 Services with 20 endpoints each. One Service is
// new in each iteration.
func BenchmarkPass(b *testing.B) {
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
	var m decide.State
	d := m.Decide(w)
	known := Observed{Synced: true, Programmed: map[world.Key]loop.Result{}}
	for _, s := range w.Services {
		s.Assigned = d.Allocation.Services[s.Key].Addrs
		known.Programmed[s.Key] = loop.Result{Key: s.Key, Plan: d.Plans[s.Key]}
	}
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
