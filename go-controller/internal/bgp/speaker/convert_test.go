// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"testing"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// What FRR cannot be asked for: the rest is proven against it.
func TestNeighbor(t *testing.T) {
	at := netip.MustParseAddr("fe80::1%eth1")
	for _, c := range []struct {
		name string
		n    bgp.Neighbor
		ok   func(*api.Peer) bool
	}{
		{"connectTime: attempts are between half of it and it apart", bgp.Neighbor{Connect: 30 * time.Second},
			func(p *api.Peer) bool { return p.Timers.Config.ConnectRetry == 15 }},
		{"connectTime of a second", bgp.Neighbor{Connect: time.Second},
			func(p *api.Peer) bool { return p.Timers.Config.ConnectRetry == 1 }},
		{"no connectTime", bgp.Neighbor{}, func(p *api.Peer) bool { return p.Timers.Config.ConnectRetry == 5 }},
		{"a link-local source gets the zone of the peer", bgp.Neighbor{Source: netip.MustParseAddr("fe80::2")},
			func(p *api.Peer) bool { return p.Transport.LocalAddress == "fe80::2%eth1" }},
		{"ttlSecurity of three hops", bgp.Neighbor{SecurityHops: 3},
			func(p *api.Peer) bool { return p.TtlSecurity.Enabled && p.TtlSecurity.TtlMin == 253 }},
		{"a TTL is nothing to an internal peer", bgp.Neighbor{MyASN: 64500, PeerASN: 64500, TTL: 5},
			func(p *api.Peer) bool { return p.EbgpMultihop == nil }},
		{"the N bit of graceful restart is off", bgp.Neighbor{GracefulRestart: true},
			func(p *api.Peer) bool {
				return p.GracefulRestart.LocalRestarting && !p.GracefulRestart.NotificationEnabled && p.GracefulRestart.DeferralTime == 1
			}},
	} {
		if p := neighbor(c.n, at); !c.ok(p) {
			t.Errorf("%s: %v", c.name, p)
		}
	}
}

func TestEndings(t *testing.T) {
	for _, c := range []struct{ old, reason, want string }{
		{"BGP_FSM_ESTABLISHED", "hold-timer-expired", "hold-timer-expired"},
		{"BGP_FSM_ESTABLISHED", "read-failed", "the connection was lost"},
		{"BGP_FSM_ESTABLISHED", "graceful-restart", "the connection was lost"},
		{"BGP_FSM_ESTABLISHED", "write-failed", "nothing could be sent to the peer: does it ask for a hold time of 0, which is not supported?"},
		{"BGP_FSM_OPENSENT", "read-failed", "the peer closed the connection instead of opening the session: it may not know this node as a neighbor"},
		{"BGP_FSM_OPENCONFIRM", "invalid-msg", "the peer refused to open the session: do both sides agree on the AS numbers?"},
		{"BGP_FSM_ACTIVE", "dying", ""},
		{"BGP_FSM_IDLE", "<nil>", ""},
	} {
		if got := ending(c.old, c.reason); got != c.want {
			t.Errorf("ending(%s, %s) = %q, want %q", c.old, c.reason, got, c.want)
		}
	}
}

// What is told is told whole, or refused with the prefix; a server takes all that is not refused.
func FuzzRoute(f *testing.F) {
	f.Add([]byte{203, 0, 113, 1}, uint8(32), []byte{10, 0, 0, 1}, uint8(2), uint32(5), uint32(64500))
	f.Add(make([]byte, 16), uint8(128), make([]byte, 16), uint8(0), uint32(0), uint32(0))
	server := newServer(newGate(), testLog(f))
	n := bgp.Neighbor{MyASN: 64500, PeerASN: 64512, RouterID: netip.MustParseAddr("192.0.2.1"), IPv4: true, IPv6: true}
	session, err := server.open(f.Context(), n, netip.MustParseAddr("192.0.2.2"), netip.Addr{}, nil, func() {})
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
