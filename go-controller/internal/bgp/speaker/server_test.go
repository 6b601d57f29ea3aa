// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"testing"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// A route that a server rejected is not considered advertised, and is advertised or withdrawn by the next call.
func TestAdvertisementIsRetried(t *testing.T) {
	t.Parallel()
	s := newServer(processLock, testLog(t))
	n := bgp.Neighbor{MyASN: 64500, PeerASN: 64512, RouterID: netip.MustParseAddr("192.0.2.1"), IPv4: true}
	l, err := newConnection(bgp.Neighbor{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	c := &session{target: target{neighbor: n}, server: s, connection: l}
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	routes := map[netip.Prefix]bgp.Attributes{prefix: {NextHop: n.RouterID}}
	has := func(want int) {
		t.Helper()
		got := 0
		if err := s.ListPath(t.Context(), &api.ListPathRequest{TableType: api.TableType_GLOBAL,
			Family: family(prefix.Addr())},
			func(*api.Destination) { got++ }); err != nil || got != want {
			t.Errorf("%d routes in the server's table (%v), want %d", got, err, want)
		}
	}
	if err := c.advertise(t.Context(), routes); err == nil || len(c.advertised) > 0 {
		t.Fatalf("advertised %v to a server that is not started: %v", c.advertised, err)
	}
	if err := c.start(t.Context(), routes); err != nil {
		t.Fatal(err)
	}
	if err := c.pending; err != nil || len(c.advertised) != 1 {
		t.Errorf("advertised %v: %v", c.advertised, err)
	}
	has(1)
	bad := map[netip.Prefix]bgp.Attributes{prefix: {NextHop: netip.IPv4Unspecified()}}
	if err := c.advertise(t.Context(), bad); err == nil || len(c.advertised) > 0 {
		t.Errorf("advertised %v without a next hop: %v", c.advertised, err)
	}
	has(0)
	if err := c.advertise(t.Context(), routes); err != nil {
		t.Error(err)
	}
	has(1)
	if err := c.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.advertise(t.Context(), nil); err == nil || len(c.advertised) != 1 {
		t.Errorf("withdrawn from a server that is stopped: %v, advertised %v", err, c.advertised)
	}
}

// A session is closed in the moment in which gobgp has connected and makes its OPEN. The race detector sees whether
// that reads what the end of the session resets.
func TestSessionEndsWhileOpenIsMade(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s := newServer(processLock, testLog(t))
			to := target{neighbor: victim(), addr: netip.MustParseAddr("192.0.2.2")}
			c, err := s.open(t.Context(), to, nil, func() {})
			if err != nil {
				t.Fatal(err)
			}
			await.True(t, "gobgp has connected", func() bool { _, ours := c.connection.conns(); return ours != nil })
			if err := c.close(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
}
