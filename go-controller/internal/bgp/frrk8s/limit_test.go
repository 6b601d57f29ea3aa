// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// many returns a cluster with Services that one peer on some nodes advertises, the oldest with the first address.
func many(services, nodes int) *world.Snapshot {
	w := &world.Snapshot{FRR: &world.FRR{Namespace: "frr"}}
	peer := &world.Peer{Name: "tor", MyASN: 64512, PeerASN: 64513, Addr: netip.MustParseAddr("10.50.0.1"), Port: 179,
		Hold: 90 * time.Second, Keepalive: 30 * time.Second, Connect: 5 * time.Second, FRRK8s: true}
	ad := &world.Advertisement{Name: "all", EveryPool: true, Pools: []string{"public"}, Length4: 32, Length6: 128}
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		w.Nodes = append(w.Nodes, &world.Node{Name: name, Hostname: name,
			External: []netip.Addr{netip.AddrFrom4([4]byte{10, 50, byte(i >> 8), byte(i)})}})
		peer.Nodes, ad.Nodes = append(peer.Nodes, name), append(ad.Nodes, name)
	}
	w.Peers, w.Advertisements = []*world.Peer{peer}, []*world.Advertisement{ad}
	w.Pools = []*world.Pool{{Name: "public", AutoAssign: true,
		Ranges: []netipx.IPRange{netipx.RangeOfPrefix(netip.MustParsePrefix("192.168.0.0/16"))}}}
	slice := &world.Slice{Family: world.IPv4, Ports: []world.Port{{Port: 80, Protocol: world.TCP}},
		Endpoints: []world.Endpoint{{Addr: netip.MustParseAddr("10.244.0.1"), Node: "n0000", Ready: true, Serving: true}}}
	for i := range services {
		a := []netip.Addr{netip.AddrFrom4([4]byte{192, 168, byte(i >> 8), byte(i)})}
		w.Services = append(w.Services, &world.Service{Key: world.Key{Namespace: "shop", Name: fmt.Sprintf("s%05d", i)},
			Created: time.Unix(int64(i), 0), Families: []world.Family{world.IPv4}, Assigned: a, Given: a,
			Ports: []world.Port{{Port: 80, Protocol: world.TCP}}, Slices: []*world.Slice{slice}})
	}
	return w
}

// Beyond the limit, the prefixes of the oldest Services are advertised. The same nodes share the objects, in buckets.
func TestPrefixesBeyondTheLimitAreDropped(t *testing.T) {
	const services, nodes = frrk8s.MaxRoutes + 20, 3
	plan := render(many(services, nodes))
	peer := plan.Of("tor")
	if len(peer.Dropped) != services-frrk8s.MaxRoutes || peer.Prefixes != services {
		t.Errorf("%d prefixes, %d dropped", peer.Prefixes, len(peer.Dropped))
	}
	if newest := netip.MustParsePrefix("192.168.3.251/32"); !peer.Dropped[newest] {
		t.Errorf("%s of a young Service is not dropped", newest)
	}
	count, largest := 0, 0
	for _, o := range plan.Objects {
		count += len(o.Spec.BGP.Routers[0].Prefixes)
		largest = max(largest, len(o.Spec.BGP.Routers[0].Prefixes))
		if len(o.Nodes) != nodes {
			t.Errorf("%s is for %v", o.Name, o.Nodes)
		}
	}
	if count != frrk8s.MaxRoutes || largest > 200 {
		t.Errorf("%d prefixes in objects, the largest has %d", count, largest)
	}
}

// One more Service changes one object.
func TestOneServiceChangesOneObject(t *testing.T) {
	before, after := render(many(500, 3)), render(many(501, 3))
	present := &world.FRR{}
	for _, o := range before.Objects {
		present.Configurations = append(present.Configurations, &world.FRRConfiguration{Name: o.Name, Peer: o.Peer,
			Nodes: o.Nodes, Spec: o.Spec})
	}
	if c := frrk8s.Diff(before.Objects, present); len(c.Yields)+len(c.Put)+len(c.After) > 0 {
		t.Errorf("nothing has changed, but there are writes: %+v", c)
	}
	if c := frrk8s.Diff(after.Objects, present); len(c.Put) != 1 || len(c.Yields)+len(c.After) > 0 {
		t.Errorf("%d objects are written", len(c.Put))
	}
}

func BenchmarkRender(b *testing.B) {
	w := many(10_000, 2_000)
	b.ReportAllocs()
	for b.Loop() {
		render(w)
	}
}

// An old Service of one namespace that gets more addresses than there is room for takes no route from others, nor from
// younger Services of its own.
func TestNamespacesShareTheLimit(t *testing.T) {
	s := newSite(many(300, 1))
	old, theirs, own := s.world.Services[0], s.world.Services[1], s.world.Services[2]
	for _, service := range s.world.Services[200:] {
		service.Key.Namespace = "bank"
	}
	theirs.Key.Namespace = "bank"
	s.settle(t)
	for i := range frrk8s.MaxRoutes {
		old.Assigned = append(old.Assigned, netip.AddrFrom4([4]byte{192, 168, 100 + byte(i>>8), byte(i)}))
	}
	s.settle(t)
	for _, service := range []*world.Service{theirs, own} {
		if !s.advertises(nodeName(0), service.Assigned[0]) {
			t.Errorf("%s of %s is withdrawn", service.Assigned[0], service.Key)
		}
	}
	prefixes := 0
	for _, o := range s.objects {
		prefixes += len(o.Spec.BGP.Routers[0].Prefixes)
	}
	if prefixes != frrk8s.MaxRoutes {
		t.Errorf("%d prefixes", prefixes)
	}
}

// A tenant whose Services have endpoints on all nodes multiplies its prefixes by the nodes. That is limited, and takes
// nothing from other namespaces.
func TestLocalRoutesAreLimited(t *testing.T) {
	const nodes = 300
	w := many(frrk8s.MaxRoutes, nodes)
	var everywhere []int
	for n := range nodes {
		everywhere = append(everywhere, n)
	}
	for _, service := range w.Services {
		endpointsOn(service, everywhere...)
	}
	theirs, cluster := w.Services[frrk8s.MaxRoutes-1], w.Services[frrk8s.MaxRoutes-2]
	theirs.Key.Namespace, cluster.LocalPolicy = "bank", false
	plan := render(w)
	routes, has := 0, map[string]int{}
	for _, o := range plan.Objects {
		for _, p := range o.Spec.BGP.Routers[0].Prefixes {
			has[p] += len(o.Nodes)
			routes += len(o.Nodes)
		}
	}
	if most := frrk8s.MaxLocalRoutes + nodes; routes > most || routes < most-2*nodes {
		t.Errorf("%d prefixes x nodes, want about %d", routes, most)
	}
	for _, s := range []*world.Service{theirs, cluster} {
		if got := has[netip.PrefixFrom(s.Assigned[0], 32).String()]; got != nodes {
			t.Errorf("%s is advertised by %d nodes", s.Key, got)
		}
	}
	if len(plan.Of("tor").Dropped) == 0 {
		t.Error("no prefix is reported as dropped")
	}
}
