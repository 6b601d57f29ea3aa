// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// Only routes of negotiated families are sent, and only those are reported.
func TestStateClaimsNegotiatedFamiliesOnly(t *testing.T) {
	t.Parallel()
	v4 := packet.NewCapMultiProtocol(packet.RF_IPv4_UC)
	t.Run("standard OPEN", func(t *testing.T) { negotiatesIPv4(t, openOf(t, 64512, 90, "192.0.2.2", v4)) })
	t.Run("extended OPEN", func(t *testing.T) { negotiatesIPv4(t, extendedOpen(t, v4)) })
}

func negotiatesIPv4(t *testing.T, open []byte) {
	t.Helper()
	t.Parallel()
	router, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	go func() {
		conn, err := router.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write(append(open, keepalive()...))
		_, _ = io.Copy(io.Discard, conn) // Until the speaker closes the connection.
	}()
	n := victim()
	at := router.Addr().(*net.TCPAddr).AddrPort()
	n.Addr, n.Port, n.Connect = at.Addr(), at.Port(), time.Second
	routes := map[netip.Prefix]bgp.Attributes{netip.MustParsePrefix("203.0.113.1/32"): {NextHop: n.RouterID}}
	for _, prefix := range []string{"2001:db8::1/128", "2001:db8::2/128"} {
		routes[netip.MustParsePrefix(prefix)] = bgp.Attributes{NextHop: netip.MustParseAddr("2001:db8:1::1")}
	}
	s, awaitStates := startSpeaker(t)
	s.Set([]bgp.Session{{Peer: "tor", Neighbor: n, Routes: routes}})
	is := awaitStates("Established", func(is []State) bool { return is[0].Phase == Established })[0]
	if is.IPv4 != 1 || is.IPv6 != 0 || is.Pending != 2 || is.Updates != 1 {
		t.Errorf("%d IPv4 and %d IPv6 routes are advertised in %d updates and %d are pending, want 1, 0, 1, 2",
			is.IPv4, is.IPv6, is.Updates, is.Pending)
	}
	if !strings.Contains(is.LastError, "IPv6 unicast was not negotiated") {
		t.Errorf("LastError is %q", is.LastError)
	}
	s.Set(nil)
	awaitStates("no session is left", func(is []State) bool { return len(is) == 0 })
}

// An IPv4 route with a next hop of IPv6 is sent only to a router that accepts such next hops (RFC 8950 section 4), and
// counts as advertised only then.
func TestExtendedNextHop(t *testing.T) {
	v4 := packet.NewCapMultiProtocol(packet.RF_IPv4_UC)
	hop6 := func(f packet.RouteFamily, hop uint16) packet.ParameterCapabilityInterface {
		return packet.NewCapExtendedNexthop([]*packet.CapExtendedNexthopTuple{packet.NewCapExtendedNexthopTuple(f, hop)})
	}
	for _, c := range []struct {
		name         string
		capabilities []packet.ParameterCapabilityInterface
		want         int
	}{
		{"no capability", nil, 0},
		{"another family", []packet.ParameterCapabilityInterface{hop6(packet.RF_IPv4_MPLS, packet.AFI_IP6)}, 0},
		{"another next hop", []packet.ParameterCapabilityInterface{hop6(packet.RF_IPv4_UC, packet.AFI_IP)}, 0},
		{"the capability", []packet.ParameterCapabilityInterface{hop6(packet.RF_IPv4_MPLS, packet.AFI_IP6),
			hop6(packet.RF_IPv4_UC, packet.AFI_IP6)}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			by4, by6 := netip.MustParsePrefix("203.0.113.4/32"), netip.MustParsePrefix("203.0.113.6/32")
			routes := map[netip.Prefix]bgp.Attributes{by4: {NextHop: netip.MustParseAddr("192.0.2.1")},
				by6: {NextHop: netip.MustParseAddr("2001:db8:1::1")}}
			s, _, in := establish(t, victim(), routes, openOf(t, 64512, 90, "192.0.2.2", append(c.capabilities, v4)...))
			r := &table{routes: map[netip.Prefix]string{}}
			for _, m := range in.take() {
				if m[typeAt] == packet.BGP_MSG_UPDATE {
					r.receive(t, m)
				}
			}
			is, _ := s.advertisedCounts()
			if _, sent := r.routes[by6]; sent != (c.want == 1) || is.ipv4 != 1+c.want || is.pending != 1-c.want ||
				is.needExtendedHop != (c.want == 0) {
				t.Errorf("%s: the router has %v, %+v", c.name, r.routes, is)
			}
			// A route that gets such a next hop is withdrawn from a router that does not accept it.
			routes = map[netip.Prefix]bgp.Attributes{by4: routes[by6]}
			if err := s.advertise(routes); err != nil {
				t.Error(err)
			}
			for _, m := range in.take() {
				r.receive(t, m)
			}
			if is, _ := s.advertisedCounts(); len(r.routes) != c.want || is.ipv4 != c.want {
				t.Errorf("%s: then the router has %v, %+v", c.name, r.routes, is)
			}
		})
	}
}
