// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// routesByNode are the routes of a peer.
type routesByNode map[string]map[netip.Prefix]bgp.Attributes

func (r routesByNode) put(node string, prefix netip.Prefix, a bgp.Attributes) (again bool) {
	if r[node] == nil {
		r[node] = map[netip.Prefix]bgp.Attributes{}
	}
	_, again = r[node][prefix]
	r[node][prefix] = a
	return again
}

// The routes of a peer by groups of nodes are those that For computes for each node. A limit keeps that many prefixes
// and names the others.
func FuzzGroup(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		data := make([]byte, 400+r.IntN(200))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data, uint8(r.IntN(4)))
	}
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		if len(data) > 600 {
			return
		}
		w := random(data)
		for _, ad := range w.Advertisements {
			ad.ByGateway = false
		}
		for _, p := range w.Peers {
			p.FRRK8s = true
		}
		l := compute(w)
		for _, p := range l.FRRPeers() {
			nodes := l.NodesOf(p)
			all := l.Group(p, nodes, bgp.Limits{Prefixes: len(data) * 100, Local: len(data) * 100})
			got, want := routesOf(t, all.Groups), routesFor(l, p.Name, nodes)
			if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("peer %s (-For +Group):\n%s", p.Name, d)
			}
			some, prefixes := l.Group(p, nodes, bgp.Limits{Prefixes: int(limit), Local: math.MaxInt}), map[netip.Prefix]bool{}
			for _, g := range some.Groups {
				for prefix := range g.Routes {
					prefixes[prefix] = true
				}
			}
			if len(prefixes) != min(int(limit), all.Prefixes) || len(prefixes)+len(some.Dropped) != some.Prefixes ||
				some.Prefixes != all.Prefixes {
				t.Errorf("limit %d: %d prefixes and %d dropped, of %d", limit, len(prefixes), len(some.Dropped), all.Prefixes)
			}
		}
	})
}

// routesOf returns the routes of groups, and checks that no node has one in two of them.
func routesOf(t *testing.T, groups []bgp.Group) routesByNode {
	t.Helper()
	out := routesByNode{}
	for _, g := range groups {
		for _, n := range g.Nodes {
			for prefix, a := range g.Routes {
				if out.put(n, prefix, a) {
					t.Errorf("%s of %s is in two groups", prefix, n)
				}
			}
		}
	}
	return out
}

// routesFor returns the routes of a peer that For computes for nodes, without next hops.
func routesFor(l *bgp.Layout, peer string, nodes []*world.Node) routesByNode {
	out := routesByNode{}
	for _, n := range nodes {
		for _, s := range l.For(n.Name) {
			for prefix, a := range s.Routes {
				if s.Peer == peer {
					a.NextHop = netip.Addr{}
					out.put(n.Name, prefix, a)
				}
			}
		}
	}
	return out
}
