// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
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
