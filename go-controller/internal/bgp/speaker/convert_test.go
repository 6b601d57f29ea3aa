// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"testing"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// Cases that can't be tested with FRR. All others are tested against it.
func TestDialOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		n    bgp.Neighbor
		ttl  int
	}{
		{"an external peer is on the link", bgp.Neighbor{MyASN: 64500, PeerASN: 64512}, 1},
		{"so is one whose AS number is not written down", bgp.Neighbor{MyASN: 64500, Dynamic: bgp.ExternalASN}, 1},
		{"and one beyond it has a TTL", bgp.Neighbor{MyASN: 64500, PeerASN: 64512, TTL: 5}, 5},
		{"a TTL is nothing to an internal peer", bgp.Neighbor{MyASN: 64500, PeerASN: 64500, TTL: 5}, 0},
		{"nor to one that is internal whatever its AS number", bgp.Neighbor{MyASN: 64500, Dynamic: bgp.InternalASN, TTL: 5},
			0},
		{"ttlSecurity of three hops", bgp.Neighbor{MyASN: 64500, PeerASN: 64500, SecurityHops: 3}, 255},
	} {
		if got := ttl(c.n); got != c.ttl {
			t.Errorf("%s: TTL %d, want %d", c.name, got, c.ttl)
		}
	}
	for _, want := range []time.Duration{time.Second, 30 * time.Second} {
		for range 100 {
			if got := retryInterval(want); got > want || got < want/2 {
				t.Fatalf("pace %s, want it between half of %s and that", got, want)
			}
		}
	}
	if p := neighbor(bgp.Neighbor{GracefulRestart: true}, 1); !p.GracefulRestart.LocalRestarting ||
		p.GracefulRestart.NotificationEnabled || p.GracefulRestart.DeferralTime != 1 {
		t.Errorf("graceful restart %v: want the N bit off and no wait", p.GracefulRestart)
	}
}

// A route is either advertised completely or rejected with an error that names the prefix. A server accepts every route
// that is not rejected.
func FuzzRoute(f *testing.F) {
	f.Add([]byte{203, 0, 113, 1}, uint8(32), []byte{10, 0, 0, 1}, uint8(2), uint32(5), uint32(64500))
	f.Add(make([]byte, 16), uint8(128), make([]byte, 16), uint8(0), uint32(0), uint32(0))
	server := newServer(newStartupLock(), testLog(f))
	n := bgp.Neighbor{MyASN: 64500, PeerASN: 64512, RouterID: netip.MustParseAddr("192.0.2.1"), IPv4: true, IPv6: true}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	defer listener.Close()
	at := listener.Addr().(*net.TCPAddr).AddrPort()
	n.Port = at.Port()
	to := target{neighbor: n, addr: at.Addr()}
	session, err := server.open(f.Context(), to, nil, func() {})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = session.close(f.Context(), "") })
	f.Fuzz(func(t *testing.T, addr []byte, bits uint8, hop []byte, prepend uint8, community, asn uint32) {
		a, _ := netip.AddrFromSlice(addr)
		b, _ := netip.AddrFromSlice(hop)
		prefix := netip.PrefixFrom(a, int(bits))
		attributes := bgp.Attributes{
			NextHop: b, Prepend: prepend, MED: &community, LocalPref: &asn, Communities: []uint32{community, asn},
			LargeCommunities: []bgp.LargeCommunity{{Global: asn, Local1: community, Local2: 1}},
		}
		n.LocalASN = asn
		path, err := route(n, prefix, attributes)
		if err != nil {
			return
		}
		if _, err := server.AddPath(t.Context(), &api.AddPathRequest{Path: path}); err != nil {
			t.Errorf("route to %s by %s: %v", prefix, b, err)
		}
		path, err = withdrawal(prefix)
		if err == nil {
			err = server.DeletePath(t.Context(), &api.DeletePathRequest{Path: path})
		}
		if err != nil {
			t.Errorf("withdrawal of %s: %v", prefix, err)
		}
	})
}
