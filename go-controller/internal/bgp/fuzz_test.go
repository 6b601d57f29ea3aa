// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// random returns a small snapshot in which peers and advertisements overlap.
func random(data []byte) *world.Snapshot {
	half := len(data) * 3 / 5
	w := worldtest.Random(worldtest.Source(data[:half]))
	s := worldtest.Source(data[half:])
	some := func(prefix string, n int) []string {
		var list []string
		for i := range n {
			if s.N(4) > 0 {
				list = append(list, fmt.Sprintf("%s%d", prefix, i))
			}
		}
		return list
	}
	number := func() *uint32 {
		n := uint32(s.N(3))
		if n == 0 {
			return nil
		}
		return &n
	}
	for i, n := range w.Nodes {
		n.External = []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 0, byte(i)})}
		if s.N(2) == 1 {
			n.External = append(n.External, netip.AddrFrom16([16]byte{0xfd, 0x50, 15: byte(i)}))
		}
		n.NetworkUnavailable = s.N(5) == 4
	}
	for i := range s.N(4) {
		p := &world.Peer{Name: fmt.Sprintf("t%d", i), Created: time.Unix(int64(s.N(3)), 0), Nodes: some("n", 4), MyASN: 64512,
			PeerASN: 64513, DualStack: s.N(2) == 1}
		switch s.N(3) {
		case 0:
			p.Addr = netip.MustParseAddr("10.50.0.1")
		case 1:
			p.Addr = netip.MustParseAddr("fd50::1")
		case 2:
			p.Interface = "eth1"
		}
		w.Peers = append(w.Peers, p)
	}
	for i := range s.N(5) {
		ad := &world.Advertisement{
			Name: fmt.Sprintf("a%d", i), Created: time.Unix(int64(s.N(3)), 0), Nodes: some("n", 4), Pools: some("p", 4),
			EveryPool: s.N(2) == 1,
			Peers:     some("t", 3), Length4: 32 - 2*s.N(3), Length6: 128 - 2*s.N(3), ByGateway: s.N(3) == 2,
			LocalPref: number(), MED: number(), Prepend: uint8(s.N(2)), Communities: []uint32{uint32(s.N(3)), uint32(s.N(3))},
		}
		if s.N(3) == 2 {
			ad.Services = []world.Selector{{{Key: "app", Values: []string{"web"}}}}
		}
		w.Advertisements = append(w.Advertisements, ad)
	}
	for _, svc := range w.Services {
		if svc.Given = nil; s.N(4) > 0 {
			svc.Given = svc.Assigned
		}
		svc.LocalPolicy = s.N(2) == 1
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			e := world.Endpoint{Addr: netip.MustParseAddr("fd99::1"), Node: fmt.Sprintf("n%d", s.N(4)), Ready: s.N(4) > 0}
			svc.Slices = append(svc.Slices, &world.Slice{Family: f, Ports: svc.Ports, Endpoints: []world.Endpoint{e}})
		}
	}
	for _, d := range w.Domains {
		d.Anchors = map[int][]netip.Addr{0: {netip.MustParseAddr("10.0.0.240")}, 1: {netip.MustParseAddr("fd00::3")}}
	}
	return w
}

// everything contains all results of a layout.
type everything struct {
	Sessions    map[string][]bgp.Session
	Duplicates  map[string]world.Finding
	Clashes     map[string][]world.Finding
	Advertisers map[string]bgp.Advertisers
}

func layoutOf(w *world.Snapshot) everything {
	l := compute(w)
	e := everything{map[string][]bgp.Session{}, l.Duplicates(), l.Clashes(), map[string]bgp.Advertisers{}}
	for _, n := range w.Nodes {
		e.Sessions[n.Name] = l.For(n.Name)
	}
	r := l.Survey()
	for _, s := range w.Services {
		for _, a := range s.Assigned {
			if advertisers := r.Of(s, a); advertisers != nil {
				e.Advertisers[s.Key.String()+" "+a.String()] = *advertisers
			}
		}
	}
	return e
}

// The order of the input does not affect the result, and computing it again changes nothing. A route has a next hop or,
// to an unnumbered peer, none. Only addresses of Services are advertised.
func FuzzFor(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		data := make([]byte, 400+r.IntN(200))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 600 {
			return
		}
		w := random(data)
		first := layoutOf(w)
		check(t, w, first)
		slices.Reverse(w.Services)
		slices.Reverse(w.Peers)
		slices.Reverse(w.Advertisements)
		slices.Reverse(w.Nodes)
		slices.Reverse(w.Pools)
		slices.Reverse(w.Domains)
		if d := cmp.Diff(first, layoutOf(w), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
			cmpopts.EquateEmpty()); d != "" {
			t.Errorf("the order of the input matters (-first +reversed):\n%s", d)
		}
	})
}

func check(t *testing.T, w *world.Snapshot, e everything) {
	t.Helper()
	var known []netip.Addr
	for _, s := range w.Services {
		known = append(known, s.Given...)
		known = append(known, s.ExternalIPs...)
	}
	for node, sessions := range e.Sessions {
		for _, s := range sessions {
			if !s.Neighbor.RouterID.Is4() || s.Neighbor.RouterID.IsUnspecified() {
				t.Errorf("%s to %s: router ID %s", node, s.Peer, s.Neighbor.RouterID)
			}
			for p, a := range s.Routes {
				if !slices.ContainsFunc(known, p.Contains) || !sound(s.Neighbor, p, a) {
					t.Errorf("%s to %s: %s %+v", node, s.Peer, p, a)
				}
			}
		}
	}
}

// sound reports whether a route can be advertised in a session.
func sound(n bgp.Neighbor, p netip.Prefix, a bgp.Attributes) bool {
	carried := n.IPv6
	if p.Addr().Is4() {
		carried = n.IPv4
	}
	hop := !n.Addr.IsValid() || a.NextHop.IsValid() && (a.NextHop.Is6() || p.Addr().Is4())
	return carried && hop && p == p.Masked() && slices.IsSorted(a.Communities)
}
