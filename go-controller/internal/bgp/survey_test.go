// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A tenant decides how many addresses a Service has and how many nodes its EndpointSlices name. What a survey takes for
// it grows with the sum of both, not with their product.
func TestSurveyOfManyAddressesOnManyNodes(t *testing.T) {
	const endpoints, addresses = 5000, 2000
	w := large(10)
	s := w.Services[0]
	s.LocalPolicy = true
	slice := &world.Slice{Family: world.IPv4, Ports: s.Slices[0].Ports}
	for i := range endpoints {
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 7, byte(i >> 8), byte(i)}),
			Node: fmt.Sprintf("a-node-that-only-the-slice-names-%d", i), Ready: true, Serving: true})
	}
	s.Slices = []*world.Slice{slice}
	r := compute(w).Survey()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range addresses {
		if a := r.Of(s, s.Assigned[0]); a == nil || len(a.Nodes) > 0 {
			t.Fatalf("advertised: %+v", a)
		}
	}
	runtime.ReadMemStats(&after)
	const most = 16 << 20
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("%d addresses with endpoints on %d nodes took %d MB, want at most %d", addresses, endpoints, took>>20,
			most>>20)
	}
}

// handWritten returns a cluster with two Services that have externalTrafficPolicy: Local, and the first of them. It has
// endpoints on a Node and on many that do not exist: the API server checks only the form of the names in
// EndpointSlices.
func handWritten() (*world.Snapshot, *world.Service) {
	w := large(10)
	w.Peers[0].FRRK8s, w.FRR = true, &world.FRR{}
	s := w.Services[0]
	s.LocalPolicy = true
	slice := &world.Slice{Family: world.IPv4, Ports: s.Slices[0].Ports}
	for i := range 100_000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{Addr: a, Node: fmt.Sprintf("%0250d", i), Ready: true,
			Serving: true})
	}
	slice.Endpoints[len(slice.Endpoints)-1].Node = "node-7"
	s.Slices = []*world.Slice{slice}
	other := w.Services[1]
	other.LocalPolicy, other.Slices = true, []*world.Slice{{Family: world.IPv4, Ports: slice.Ports,
		Endpoints: slice.Endpoints[:1]}}
	w.Services = w.Services[:2]
	return w, s
}

// What is kept of EndpointSlices, and sorted in each decision, is bounded by the nodes of the cluster, and not by what
// tenants write.
func TestNodesThatDoNotExistTakeNoWork(t *testing.T) {
	w, s := handWritten()
	one := *w
	one.Nodes = w.Nodes[7:8]
	all, own := compute(w), compute(&one)
	for name, work := range map[string]func() string{
		"survey": func() string { return fmt.Sprint(all.Survey().Of(s, s.Assigned[0]).NotAdvertising) },
		"groups": func() string {
			g := all.Group(w.Peers[0], w.Nodes, bgp.Limits{Prefixes: 10, Local: 100}).Groups
			return fmt.Sprint(g[0].Nodes)
		},
		"node": func() string {
			if routes := own.For("node-7")[0].Routes; len(routes) == 1 {
				return "[node-7]"
			}
			return ""
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := work()
		runtime.ReadMemStats(&after)
		const most = 256 << 10
		if took := after.TotalAlloc - before.TotalAlloc; got != "[node-7]" || took > most {
			t.Errorf("%s: %s, and took %d kB, want at most %d", name, got, took>>10, most>>10)
		}
	}
}

// The endpoints of a Service are read once, and not for each peer, survey and decision: only if they or the Nodes
// changed.
func TestNodesOfEndpointsAreKeptAcrossDecisions(t *testing.T) {
	w, s := handWritten()
	l := compute(w)
	nodes := func(l *bgp.Layout, s *world.Service) string {
		g := l.Group(w.Peers[0], w.Nodes, bgp.Limits{Prefixes: 10, Local: 100}).Groups
		var of []string
		for _, group := range g {
			of = append(of, group.Nodes...)
		}
		survey := l.Survey()
		survey.Of(w.Services[1], w.Services[1].Assigned[0])
		a := survey.Of(s, s.Assigned[0])
		if a == nil {
			return fmt.Sprint(of)
		}
		return fmt.Sprint(of, append(a.Nodes, a.NotAdvertising...))
	}
	const want = "[node-7] [node-7]"
	if got := nodes(l, s); got != want {
		t.Fatal(got)
	}
	endpoints := s.Slices[0].Endpoints
	s.Slices[0].Endpoints = nil // which no one does: who reads them again finds none
	again := compute(w)
	again.KeepFrom(l)
	for name, l := range map[string]*bgp.Layout{"again": l, "in the next decision": again} {
		if got := nodes(l, s); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	changed := *s
	changed.Slices = []*world.Slice{{Family: world.IPv4, Ports: s.Ports, Endpoints: endpoints[:1]}}
	changed.Slices[0].Endpoints[0].Node = "node-3"
	w.Services[0] = &changed
	next := compute(w)
	next.KeepFrom(again)
	if got := nodes(next, &changed); got != "[node-3] [node-3]" {
		t.Errorf("other endpoints: %s", got)
	}
	w.Nodes = w.Nodes[4:]
	fewer := compute(w)
	fewer.KeepFrom(next)
	if got := nodes(fewer, &changed); got != "[] []" {
		t.Errorf("without the Node: %s", got)
	}
}

// Tenants decide how many sets of nodes have endpoints, and each decision makes a survey. Results are computed again
// only if something has changed that they depend on.
func TestResultsOfASurveyAreKeptAcrossDecisions(t *testing.T) {
	node := func(change func(n *world.Node)) func(w *world.Snapshot) {
		return func(w *world.Snapshot) {
			n := *w.Nodes[7]
			change(&n)
			w.Nodes[7] = &n
		}
	}
	session := func(s world.PeerSession) func(w *world.Snapshot) {
		return func(w *world.Snapshot) { w.Sessions["node-7"] = map[string]world.PeerSession{"tor-1": s} }
	}
	const both = "[node-7 node-8]"
	base, s := handWritten()
	base.Peers[0].FRRK8s, base.FRR = false, nil
	s.Slices[0].Endpoints = s.Slices[0].Endpoints[:2]
	s.Slices[0].Endpoints[0].Node, s.Slices[0].Endpoints[1].Node = "node-7", "node-8"
	of := func(l *bgp.Layout, w *world.Snapshot) *bgp.Advertisers {
		return l.Survey().Of(w.Services[0], s.Assigned[0])
	}
	l := compute(base)
	first := of(l, base)
	if of(l, base) != first {
		t.Error("a second survey of a layout computes it again")
	}
	for name, c := range map[string]struct {
		change func(w *world.Snapshot)
		kept   bool
		nodes  string
	}{
		"nothing":               {func(*world.Snapshot) {}, true, both},
		"another label":         {node(func(n *world.Node) { n.Hostname = "x" }), true, both},
		"the same session":      {session(world.PeerSession{Established: true}), true, both},
		"a session is down":     {session(world.PeerSession{}), false, "[node-8]"},
		"a node drains":         {node(func(n *world.Node) { n.Draining = "x" }), false, "[node-8]"},
		"a node has no network": {node(func(n *world.Node) { n.NetworkUnavailable = true }), false, "[node-8]"},
		"a node has no address": {node(func(n *world.Node) { n.External = nil }), false, "[node-8]"},
		"a fault": {node(func(n *world.Node) {
			n.Faults = map[string]world.Fault{world.EveryNetwork: {Message: "x"}}
		}), false, both},
		"a peer": {func(w *world.Snapshot) {
			p := *w.Peers[0]
			p.Nodes = []string{"node-7"}
			w.Peers[0] = &p
		}, false, "[node-7]"},
		"an advertisement": {func(w *world.Snapshot) {
			ad := *w.Advertisements[0]
			ad.Nodes = []string{"node-8"}
			w.Advertisements[0] = &ad
		}, false, "[node-8]"},
		"other endpoints": {func(w *world.Snapshot) {
			s := *w.Services[0]
			s.Slices = []*world.Slice{{Family: world.IPv4, Ports: s.Slices[0].Ports, Endpoints: s.Slices[0].Endpoints[:1]}}
			w.Services[0] = &s
		}, false, "[node-7]"},
	} {
		w := new(*base)
		w.Nodes, w.Services, w.Sessions = slices.Clone(w.Nodes), slices.Clone(w.Services), maps.Clone(w.Sessions)
		w.Peers, w.Advertisements = slices.Clone(w.Peers), slices.Clone(w.Advertisements)
		c.change(w)
		again := compute(w)
		again.KeepFrom(l)
		if got := of(again, w); (got == first) != c.kept || fmt.Sprint(got.Nodes) != c.nodes {
			t.Errorf("%s: kept %t, advertised by %v; want %t, %s", name, got == first, got.Nodes, c.kept, c.nodes)
		}
	}
}

// While BGP is off, no edit of an advertisement without effect helps, and none is named.
func TestNoIneffectiveAdvertisementWhileBGPIsOff(t *testing.T) {
	w := &world.Snapshot{Advertisements: []*world.Advertisement{{Name: "routed", Pools: []string{"public"},
		Findings: []world.Finding{{Reason: "NoNodes", Fatal: true}}}}}
	for _, mode := range world.Modes() {
		w.Cluster.ModeSetting.Mode = mode
		if ad := compute(w).IneffectiveOn("public"); (ad != nil) != mode.BGP() {
			t.Errorf("mode %v: %+v is named", mode, ad)
		}
	}
}
