// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// large has 10,000 Services with 20 endpoints each, which nodes advertise to two peers.
func large(nodes int) *world.Snapshot {
	w := worldtest.Large(10_000, 20)
	a := ipam.Allocate(w, place.Compute(w).ShardOf)
	for _, s := range w.Services {
		s.Assigned, s.Given = a.Services[s.Key].Addrs, a.Services[s.Key].Addrs
	}
	w.Nodes, w.Sessions = nil, map[string]map[string]world.PeerSession{}
	var names []string
	for i := range nodes {
		n := &world.Node{Name: fmt.Sprintf("node-%d", i), External: []netip.Addr{netip.AddrFrom4([4]byte{10, 9, byte(i >> 8),
			byte(i)})}}
		w.Nodes = append(w.Nodes, n)
		names = append(names, n.Name)
		w.Sessions[n.Name] = map[string]world.PeerSession{"tor-1": {Established: true}}
	}
	slices.Sort(names)
	for i := 1; i <= 2; i++ {
		w.Peers = append(w.Peers, &world.Peer{Name: fmt.Sprintf("tor-%d", i), Nodes: names, MyASN: 64512, PeerASN: 64513,
			Addr: netip.AddrFrom4([4]byte{10, 8, 0, byte(i)})})
	}
	w.Advertisements = []*world.Advertisement{{Name: "all", Nodes: names, Pools: []string{"large"}, EveryPool: true,
		Length4: 32, Length6: 128}}
	return w
}

// BenchmarkFor measures what a node computes after each change.
func BenchmarkFor(b *testing.B) {
	w := large(1)
	b.ReportAllocs()
	for b.Loop() {
		if s := compute(w).For("node-0"); len(s) != 2 || len(s[0].Routes) != 10_000 {
			b.Fatalf("%d sessions", len(s))
		}
	}
}

// BenchmarkSurvey measures what the controller of 2,000 nodes computes for the conditions.
func BenchmarkSurvey(b *testing.B) {
	w := large(2000)
	l := compute(w)
	b.ReportAllocs()
	for b.Loop() {
		r := l.Survey()
		for _, s := range w.Services {
			if len(r.Of(s, s.Assigned[0]).Nodes) != 2000 {
				b.Fatal("not all nodes advertise")
			}
		}
		r.SessionNodes()
		l.Duplicates()
		l.Clashes()
	}
}
