// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// tenants returns a cluster with a peer, six nodes and one Service in each of some namespaces, the oldest first.
func tenants(count int, service func() *world.Service) *world.Snapshot {
	peer := &world.Peer{Name: "tor", MyASN: 64512, PeerASN: 64513, Addr: netip.MustParseAddr("10.50.0.1"), FRRK8s: true}
	ad := &world.Advertisement{Name: "all", EveryPool: true, Pools: []string{"public"}, Length4: 32}
	w := &world.Snapshot{FRR: &world.FRR{}, Peers: []*world.Peer{peer}, Advertisements: []*world.Advertisement{ad}}
	for i := range 6 {
		n := &world.Node{Name: fmt.Sprintf("n%d", i), External: []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 0, byte(i)})}}
		w.Nodes, peer.Nodes, ad.Nodes = append(w.Nodes, n), append(peer.Nodes, n.Name), append(ad.Nodes, n.Name)
	}
	w.Pools = []*world.Pool{{Name: "public", AutoAssign: true,
		Ranges: []netipx.IPRange{netipx.RangeOfPrefix(netip.MustParsePrefix("192.168.0.0/16"))}}}
	for range count {
		addTenant(w, service())
	}
	return w
}

// addTenant adds a Service, younger than all others, in a namespace of its own.
func addTenant(w *world.Snapshot, s *world.Service) {
	i := len(w.Services)
	s.Key, s.Created = world.Key{Namespace: fmt.Sprintf("tenant%d", i), Name: "web"}, time.Unix(int64(i), 0)
	for j := range s.Assigned {
		s.Assigned[j] = netip.AddrFrom4([4]byte{192, 168, byte(i), byte(j)})
	}
	s.Given = s.Assigned
	w.Services = append(w.Services, s)
}

// serviceOf returns a constructor of Services with a number of addresses and endpoints on a number of nodes.
func serviceOf(addresses, nodes int, local bool) func() *world.Service {
	return func() *world.Service {
		slice := &world.Slice{Family: world.IPv4, Ports: []world.Port{{Port: 80, Protocol: world.TCP}}}
		for n := range nodes {
			slice.Endpoints = append(slice.Endpoints, world.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, byte(n), 2}),
				Node: fmt.Sprintf("n%d", n), Ready: true, Serving: true})
		}
		return &world.Service{Families: []world.Family{world.IPv4}, Assigned: make([]netip.Addr, addresses),
			LocalPolicy: local, Ports: []world.Port{{Port: 80, Protocol: world.TCP}}, Slices: []*world.Slice{slice}}
	}
}

// grouped returns the routes of the peer within limits, which the objects of frr-k8s have then.
func grouped(w *world.Snapshot, limits bgp.Limits) bgp.Grouped {
	l := compute(w)
	got := l.Group(w.Peers[0], l.NodesOf(w.Peers[0]), limits)
	var prefixes []string
	for _, group := range got.Groups {
		for prefix := range group.Routes {
			prefixes = append(prefixes, prefix.String())
		}
	}
	w.FRR.Configurations = []*world.FRRConfiguration{{Peer: w.Peers[0].Name,
		Spec: frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{{Prefixes: prefixes}}}}}}
	return got
}

// One Service more than a peer may have costs one prefix, and not one of each namespace, although a share may be less
// than a prefix. Prefixes that are advertised come before one that needs as much.
func TestOneServiceBeyondTheLimitCostsOnePrefix(t *testing.T) {
	one, two, local := serviceOf(1, 6, false), serviceOf(2, 6, false), serviceOf(1, 5, true)
	prefixes, routes := bgp.Limits{Prefixes: 10, Local: math.MaxInt}, bgp.Limits{Prefixes: 100, Local: 20}
	for name, c := range map[string]struct {
		limits  bgp.Limits
		present *world.Snapshot
		add     *world.Service
		old     bool
		// lost means that the added Service is what does not fit. Otherwise it needs less than an equal share.
		lost bool
	}{
		"a prefix of each namespace": {prefixes, tenants(10, one), one(), false, true},
		"of an older Service":        {prefixes, tenants(10, one), one(), true, true},
		"two of each":                {prefixes, tenants(5, two), one(), false, false},
		"on five nodes":              {routes, tenants(4, local), local(), false, true},
		"on one node":                {routes, tenants(4, local), serviceOf(1, 1, true)(), false, false},
		"on six nodes":               {routes, tenants(4, local), serviceOf(1, 6, true)(), true, true},
	} {
		if got := grouped(c.present, c.limits); len(got.Dropped) != 0 {
			t.Fatalf("%s: %v dropped at the limit", name, got.Dropped)
		}
		addTenant(c.present, c.add)
		if c.old {
			c.add.Created = time.Unix(-1, 0)
		}
		got := grouped(c.present, c.limits)
		if lost := got.Dropped[netip.PrefixFrom(c.add.Assigned[0], 32)]; len(got.Dropped) != 1 || lost != c.lost {
			t.Errorf("%s: %v dropped, want one, the added one: %t", name, slices.Collect(maps.Keys(got.Dropped)), c.lost)
		}
		if again := grouped(c.present, c.limits); !maps.Equal(again.Dropped, got.Dropped) {
			t.Errorf("%s: %v dropped, and then %v", name, got.Dropped, again.Dropped)
		}
	}
}
