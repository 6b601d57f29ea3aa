// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// table is what a router has learned. It reads UPDATEs with gobgp's parser.
type table struct {
	routes    map[netip.Prefix]string
	endOfRIBs int
	updates   int
}

// receive applies a batch of messages.
func (tb *table) receive(t *testing.T, raw []byte) {
	t.Helper()
	in, buf := bufio.NewReader(bytes.NewReader(raw)), make([]byte, maxMessage)
	for m, err := next(in, buf); err == nil; m, err = next(in, buf) {
		parsed, err := packet.ParseBGPMessage(m)
		if err != nil {
			t.Fatalf("malformed message %x: %v", m, err)
		}
		body := parsed.Body.(*packet.BGPUpdate)
		if ends, _ := body.IsEndOfRib(); ends {
			tb.endOfRIBs++
			continue
		}
		tb.updates++
		if _, err := packet.ValidateUpdateMsg(body, map[packet.RouteFamily]packet.BGPAddPathMode{
			packet.RF_IPv4_UC: packet.BGP_ADD_PATH_NONE, packet.RF_IPv6_UC: packet.BGP_ADD_PATH_NONE}, true, false,
			false); err != nil {
			t.Fatalf("a router refuses %x: %v", m, err)
		}
		tb.apply(body)
	}
}

func (tb *table) apply(body *packet.BGPUpdate) {
	with := ""
	drop, add := map[string]bool{}, map[string]bool{}
	for _, a := range body.PathAttributes {
		switch a := a.(type) {
		case *packet.PathAttributeMpReachNLRI:
			for _, n := range a.Value {
				add[n.String()] = true
			}
			with += " by " + a.Nexthop.String()
		case *packet.PathAttributeMpUnreachNLRI:
			for _, n := range a.Value {
				drop[n.String()] = true
			}
		case *packet.PathAttributeNextHop:
			with += " by " + a.Value.String()
		default:
			with += " " + a.String()
		}
	}
	for _, n := range body.WithdrawnRoutes {
		drop[n.String()] = true
	}
	for _, n := range body.NLRI {
		add[n.String()] = true
	}
	for prefix := range drop {
		delete(tb.routes, netip.MustParsePrefix(prefix))
	}
	for prefix := range add {
		tb.routes[netip.MustParsePrefix(prefix)] = with
	}
}

// drain sends everything there is to send.
func drain(t *testing.T, o *adjOut, r *table) {
	t.Helper()
	for i := 0; !o.idle(); i++ {
		out := o.next()
		if len(out) == 0 || len(out) > batch || i > 1000 {
			t.Fatalf("batch %d has %d octets", i, len(out))
		}
		r.receive(t, out)
		o.written()
	}
}

func started(n bgp.Neighbor, f Families, routes map[netip.Prefix]bgp.Attributes) *adjOut {
	o := &adjOut{neighbor: n, families: f, fourOctet: n.LocalASN == 0, extendedHop: true, want: routes,
		local: netip.MustParseAddr("fe80::1%eth0")}
	o.start()
	return o
}

func prefixes(n int, attributes bgp.Attributes) map[netip.Prefix]bgp.Attributes {
	routes := map[netip.Prefix]bgp.Attributes{}
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		routes[netip.PrefixFrom(a, 32)] = attributes
	}
	return routes
}

// Routes with equal attributes share UPDATEs.
func TestUpdatesArePacked(t *testing.T) {
	routes := prefixes(10_000, bgp.Attributes{NextHop: netip.MustParseAddr("192.0.2.1")})
	o, r := started(victim(), Families{true, true}, routes), &table{routes: map[netip.Prefix]string{}}
	drain(t, o, r)
	if len(r.routes) != 10_000 || r.updates != 13 || r.endOfRIBs != 2 {
		t.Errorf("%d routes in %d UPDATEs, %d End-of-RIBs", len(r.routes), r.updates, r.endOfRIBs)
	}
	if want := (counts{ipv4: 10_000, updates: 10_000}); o.counts != want {
		t.Errorf("%+v, want %+v", o.counts, want)
	}
	o.want, r.updates = nil, 0
	if err := o.plan(); err != nil {
		t.Fatal(err)
	}
	drain(t, o, r)
	if len(r.routes) != 0 || r.updates != 13 || r.endOfRIBs != 2 {
		t.Errorf("%d routes after %d UPDATEs, %d End-of-RIBs", len(r.routes), r.updates, r.endOfRIBs)
	}
}

// While a router takes a batch, routes change. It then receives the newest, and none that has become superfluous.
func TestNewestRoutesAreSent(t *testing.T) {
	hop := netip.MustParseAddr("192.0.2.1")
	o := started(victim(), Families{IPv4: true}, prefixes(50_000, bgp.Attributes{NextHop: hop}))
	r := &table{routes: map[netip.Prefix]string{}}
	r.receive(t, o.next())
	first := len(r.routes)
	for prepend := range uint8(100) {
		o.want = prefixes(100+int(prepend), bgp.Attributes{NextHop: hop, Prepend: prepend})
		if err := o.plan(); err != nil {
			t.Fatal(err)
		}
	}
	if pending := o.counts.pending; pending != 199+first {
		t.Errorf("%d routes are pending, want 199 and %d that are being written", pending, first)
	}
	o.written()
	drain(t, o, r)
	if len(r.routes) != 199 || o.counts != (counts{ipv4: 199, updates: uint64(first + first - 199 + 199)}) {
		t.Errorf("the router has %d routes; %+v, and the first batch had %d", len(r.routes), o.counts, first)
	}
}

// Routes of families that were not negotiated, and those that can't be sent, are pending. A route that becomes
// impossible is withdrawn.
func TestPendingRoutes(t *testing.T) {
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	hop := netip.MustParseAddr("192.0.2.1")
	good := bgp.Attributes{NextHop: hop}
	o := started(victim(), Families{IPv4: true}, map[netip.Prefix]bgp.Attributes{prefix: good,
		netip.MustParsePrefix("2001:db8::1/128"): {NextHop: netip.MustParseAddr("2001:db8::2")}})
	r := &table{routes: map[netip.Prefix]string{}}
	drain(t, o, r)
	if want := (counts{ipv4: 1, pending: 1, updates: 1}); o.counts != want {
		t.Errorf("%+v, want %+v", o.counts, want)
	}
	for what, c := range map[string]struct {
		prefix string
		bgp.Attributes
	}{
		"no next hop":                {"203.0.113.1/32", bgp.Attributes{NextHop: netip.IPv4Unspecified()}},
		"want one without host bits": {"203.0.113.1/24", good},
		"want one of IPv6":           {"2001:db8::/64", good},
		"its attributes have 4064 octets": {"203.0.113.1/32", bgp.Attributes{NextHop: hop,
			Communities: make([]uint32, 1010)}},
	} {
		o.families = Families{true, true}
		o.want = map[netip.Prefix]bgp.Attributes{netip.MustParsePrefix(c.prefix): c.Attributes}
		if err := o.plan(); !strings.Contains(fmt.Sprint(err), what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
		drain(t, o, r)
		if len(r.routes) != 0 || o.counts.pending != 1 || o.counts.ipv4 != 0 {
			t.Errorf("%s: the router has %v; %+v", what, r.routes, o.counts)
		}
	}
}

// A request for a family repeats its routes once, also if it arrives several times.
func TestRefreshRepeatsOneFamily(t *testing.T) {
	routes := prefixes(3, bgp.Attributes{NextHop: netip.MustParseAddr("192.0.2.1")})
	routes[netip.MustParsePrefix("2001:db8::1/128")] = bgp.Attributes{} // by the link-local address
	o, r := started(victim(), Families{true, true}, routes), &table{routes: map[netip.Prefix]string{}}
	drain(t, o, r)
	if got := r.routes[netip.MustParsePrefix("2001:db8::1/128")]; !strings.Contains(got, "by fe80::1") {
		t.Errorf("the route is %q", got)
	}
	was := maps.Clone(r.routes)
	clear(r.routes)
	for range 3 {
		o.refresh(Families{IPv4: true})
	}
	drain(t, o, r)
	if len(r.routes) != 3 || o.counts.updates != 7 || r.endOfRIBs != 2 {
		t.Errorf("the router has %v after %+v", r.routes, o.counts)
	}
	clear(r.routes)
	o.refresh(Families{true, true})
	drain(t, o, r)
	if !maps.Equal(was, r.routes) {
		t.Errorf("the router has %v, want %v", r.routes, was)
	}
}

// Whatever changes in which order, a router ends up with the same routes as one that learns only the last ones. It can
// read every message, one without AS numbers of four octets, too, and never has a route that can't be sent.
func FuzzAdjOut(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := victim()
		if kind&1 != 0 {
			n.PeerASN = n.MyASN
		}
		if kind&2 != 0 {
			n.LocalASN = 4200000000
		}
		families := Families{kind&4 == 0, kind&8 == 0}
		anyRoutes := func() map[netip.Prefix]bgp.Attributes {
			routes := map[netip.Prefix]bgp.Attributes{}
			for range random.IntN(40) {
				prefix, a := anyRoute(random)
				routes[prefix] = a
			}
			return routes
		}
		o, r := started(n, families, anyRoutes()), &table{routes: map[netip.Prefix]string{}}
		for range random.IntN(10) {
			if random.IntN(2) == 0 && !o.idle() {
				r.receive(t, o.next())
			}
			if random.IntN(2) == 0 {
				o.refresh(Families{random.IntN(2) == 0, true})
			}
			o.want = anyRoutes()
			_ = o.plan() // A route in it may be impossible.
			if random.IntN(2) == 0 {
				o.written()
			}
		}
		o.written()
		drain(t, o, r)
		fresh, alone := started(n, families, o.want), &table{routes: map[netip.Prefix]string{}}
		drain(t, fresh, alone)
		if !maps.Equal(r.routes, alone.routes) {
			t.Fatalf("the router has %v\nwant %v", r.routes, alone.routes)
		}
		if n := o.counts.ipv4 + o.counts.ipv6; n != len(r.routes) || n+o.counts.pending != len(o.want) {
			t.Fatalf("%+v for %d routes of %d", o.counts, len(r.routes), len(o.want))
		}
	})
}

// anyRoute returns a route that may be impossible to send.
func anyRoute(random *rand.Rand) (netip.Prefix, bgp.Attributes) {
	v4 := netip.AddrFrom4([4]byte{203, 0, 113, byte(random.IntN(16))})
	v6 := netip.MustParseAddr("2001:db8::").Next()
	prefix := netip.PrefixFrom(v4, 20+random.IntN(13))
	if random.IntN(2) == 0 {
		prefix = netip.PrefixFrom(v6, 100+random.IntN(29))
	}
	if random.IntN(10) > 0 {
		prefix = prefix.Masked()
	}
	some := func() *uint32 {
		if random.IntN(2) == 0 {
			return nil
		}
		return new(random.Uint32())
	}
	a := bgp.Attributes{MED: some(), LocalPref: some(), Prepend: uint8(random.IntN(256)),
		NextHop: []netip.Addr{{}, v4, v6, netip.IPv4Unspecified()}[random.IntN(4)]}
	if random.IntN(2) == 0 {
		a.Communities = slices.Repeat([]uint32{random.Uint32()}, random.IntN(1000))
	}
	if random.IntN(2) == 0 {
		a.LargeCommunities = slices.Repeat([]bgp.LargeCommunity{{Global: 1, Local1: 2, Local2: random.Uint32()}},
			random.IntN(300))
	}
	return prefix, a
}
