// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// bfdOfNode provides BFD to all speakers in the node's namespace, because UDP ports can't be shared. Sessions must
// have different names.
var bfdOfNode = sync.OnceValue(func() *nodeBFD {
	b := &nodeBFD{speakers: map[string]*speaker.Speaker{}}
	b.Watcher = watch.New(func(peer string, _ watch.Session) {
		b.mu.Lock()
		s := b.speakers[peer]
		b.mu.Unlock()
		if s != nil {
			s.Changed(peer)
		}
	})
	go func() { _ = b.Run(context.Background()) }() // until the process ends
	return b
})

type nodeBFD struct {
	*watch.Watcher
	mu       sync.Mutex
	speakers map[string]*speaker.Speaker
}

// newWatchedNode returns a node with BFD for the named peer.
func newWatchedNode(t *testing.T, peer string) *node {
	t.Helper()
	b := bfdOfNode()
	n := newNode(t, speaker.Options{BFD: agent.Paths{Watcher: b.Watcher}})
	b.mu.Lock()
	b.speakers[peer] = n.Speaker
	b.mu.Unlock()
	return n
}

// quickBFD detects failures long before the hold time expires.
func quickBFD() *bgp.BFD {
	return &bgp.BFD{Receive: 300 * time.Millisecond, Transmit: 300 * time.Millisecond, Multiplier: 3}
}

// patientBFD detects failures before the hold time expires, and takes no stalled machine for one.
func patientBFD() *bgp.BFD {
	return &bgp.BFD{Receive: time.Second, Transmit: time.Second, Multiplier: 25}
}

// drop drops all packets between router and node, or lets them pass again, while both ends see their links up. It
// works in both directions, because a router that still reaches the node ends the session itself as soon as its BFD
// fails.
func (s *site) drop(t *testing.T, drop bool) {
	t.Helper()
	for _, in := range []struct {
		dev    string
		prefix []string
	}{{s.dev, nil}, {"eth0", []string{"ip", "netns", "exec", s.Netns}}} {
		rules := fmt.Sprintf("table netdev away {\nchain in {\ntype filter hook ingress device %s priority 0; policy "+
			"drop;\n}\n}", in.dev)
		if !drop {
			rules = "delete table netdev away"
		}
		run(t, slices.Concat(in.prefix, []string{"nft", rules})...)
	}
}

// A link fails. BFD detects this and ends the session (RFC 5882), which returns after the link. make bench-bgp measures
// how long that takes.
func TestPathFails(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name       string
		v6         bool
		away, back func(*testing.T, *site)
	}{
		{
			name: "silently",
			away: func(t *testing.T, s *site) { s.drop(t, true) },
			back: func(t *testing.T, s *site) { s.drop(t, false) },
		},
		{
			name: "with its carrier", v6: true,
			away: func(t *testing.T, s *site) { batch(t, s.Netns, "link set eth0 down") },
			back: func(t *testing.T, s *site) {
				batch(t, s.Netns, "link set eth0 up", fmt.Sprintf("addr replace %s dev eth0 nodad", s.host(true, 1)))
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 70+i)
			s.configure(t, s.neighbor(c.v6, 2, nodeASN, "timers 30 90", "bfd 25 1000 1000")...)
			peer := "away " + c.name
			n := newWatchedNode(t, peer)
			session := s.session(peer, c.v6, 2)
			session.Neighbor.Hold, session.Neighbor.Keepalive, session.Neighbor.Connect = 90*time.Second, 30*time.Second,
				5*time.Second
			session.BFD = patientBFD()
			prefixes := []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32"), netip.MustParsePrefix("2001:db8:ffff::1/128")}
			session.Routes = s.routes(2, prefixes[0].String(), prefixes[1].String())
			n.want(session)
			n.established(t, peer)
			s.has(t, true, prefixes...)
			up := func(context.Context) error {
				if s := n.state(peer); s.BFD != "Up" {
					return fmt.Errorf("BFD is %s", s.BFD)
				}
				return nil
			}
			eventually(t, up)
			eventually(t, func(ctx context.Context) error {
				state, err := s.neighborState(ctx, s.host(c.v6, 2).Addr().String())
				// FRR 10 ignores that BFD goes down in the second in which BGP was established (bgpd/bgp_bfd.c).
				if since, _ := strconv.Atoi(lookup(state, "bgpTimerUpMsec")); err != nil || since < 2000 {
					return fmt.Errorf("the router has the session for %d ms, %w", since, err)
				}
				return up(ctx)
			})
			c.away(t, s)
			lost := n.lost(t, peer)
			if !strings.Contains(lost.LastError, "BFD is down") {
				t.Errorf("state %+v", lost)
			}
			s.has(t, false, prefixes...)
			eventually(t, func(context.Context) error { // an attempt to dial has failed
				if now := n.state(peer); !now.LastErrorTime.After(lost.LastErrorTime) {
					return fmt.Errorf("state %+v", now)
				}
				return nil
			})
			c.back(t, s)
			n.established(t, peer)
			s.has(t, true, prefixes...)
			eventually(t, up)
		})
	}
}

// FRR closes the session when BFD ends, also by AdminDown, and drops its routes. So the node closes the session first,
// and the router keeps its routes (graceful restart) until the node opens it again.
func TestEndOfBFD(t *testing.T) {
	t.Parallel()
	for i, dynamic := range []bool{false, true} {
		t.Run(fmt.Sprintf("dynamic neighbors %t", dynamic), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 76+i)
			if dynamic {
				s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " neighbor nodes peer-group",
					fmt.Sprintf(" neighbor nodes remote-as %d", nodeASN), " neighbor nodes bfd", " neighbor nodes passive",
					" bgp listen range "+s.v4.String()+" peer-group nodes",
					" address-family ipv4 unicast", "  neighbor nodes activate")
			} else {
				s.configure(t, s.neighbor(false, 2, nodeASN, "bfd 25 1000 1000")...)
			}
			peer := fmt.Sprintf("end of BFD, dynamic %t", dynamic)
			n := newWatchedNode(t, peer)
			c := s.session(peer, false, 2)
			c.Neighbor.GracefulRestart, c.Neighbor.IPv6 = true, !dynamic
			c.Routes = s.routes(2, "203.0.113.1/32")
			n.want(c)
			n.established(t, peer)
			s.has(t, true, slices.Collect(maps.Keys(c.Routes))...)
			c.BFD = patientBFD() // from now on: with it, the first dial would wait for the detection time
			n.want(c)
			var was speaker.State
			eventually(t, func(ctx context.Context) error {
				was = n.state(peer)
				state, err := s.neighborState(ctx, s.host(false, 2).Addr().String())
				// FRR 10 ignores that BFD goes down in the second in which BGP was established (bgpd/bgp_bfd.c).
				since, _ := strconv.Atoi(lookup(state, "bgpTimerUpMsec"))
				if lookup(state, "peerBfdInfo.status") != `"Up"` || was.BFD != "Up" || since < 2000 {
					return fmt.Errorf("BFD is %s, on the router %s; BGP for %d ms (%w)", was.BFD,
						lookup(state, "peerBfdInfo.status"), since, err)
				}
				return nil
			})
			gone := s.deletions(t)
			c.BFD = nil
			n.want(c)
			eventually(t, func(ctx context.Context) error {
				now := n.state(peer)
				state, err := s.neighborState(ctx, s.host(false, 2).Addr().String())
				if now.Phase != speaker.Established || !now.Since.After(was.Since) || now.BFD != "" ||
					lookup(state, "bgpState") != `"Established"` {
					return fmt.Errorf("state %+v, on the router %s (%w)", now, lookup(state, "bgpState"), err)
				}
				return nil
			})
			if now := n.state(peer); now.NotificationsReceived > 0 {
				t.Errorf("the router has closed the session: %+v", now)
			}
			s.keepsRoutes(t, c, gone)
		})
	}
}

// A router in strict mode holds BGP until BFD is up (draft-ietf-idr-bgp-bfd-strict-mode). FRR 8.4 does not have this
// mode. Instead, it refuses BGP here until its own BFD session with the node is up.
func TestRouterHoldsBGPUntilBFDIsUp(t *testing.T) {
	t.Parallel()
	for i, v6 := range []bool{false, true} {
		peer := fmt.Sprintf("strict, IPv6 %t", v6)
		t.Run(peer, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 74+i)
			from := s.host(v6, 2).Addr()
			s.configure(t, s.neighbor(v6, 2, nodeASN, "shutdown")...)
			s.configure(t, "bfd", fmt.Sprintf(" peer %s local-address %s interface eth0", from, s.host(v6, 1).Addr()),
				"  receive-interval 300", "  transmit-interval 300", "  detect-multiplier 3")
			n := newWatchedNode(t, peer)
			session := s.session(peer, v6, 2)
			session.BFD = quickBFD()
			n.want(session)
			eventually(t, func(ctx context.Context) error {
				var peers []map[string]any
				if err := s.Show(ctx, "show bfd peers json", &peers); err != nil {
					return err
				}
				if len(peers) != 1 || peers[0]["status"] != "up" {
					return fmt.Errorf("BFD of the router: %v", peers)
				}
				return nil
			})
			eventually(t, func(context.Context) error {
				if state := n.state(peer); state.Phase == speaker.Established || state.BFD != "Up" {
					return fmt.Errorf("with BFD up and BGP refused: %+v", state)
				}
				return nil
			})
			s.configure(t, fmt.Sprintf("router bgp %d", routerASN), fmt.Sprintf(" no neighbor %s shutdown", from))
			eventually(t, func(context.Context) error {
				if state := n.state(peer); state.Phase != speaker.Established || state.BFD != "Up" {
					return fmt.Errorf("with BGP permitted: %+v", state)
				}
				return nil
			})
		})
	}
}

// An external router that is not on the link is configured as if it were. The error names the address and the fields.
func TestNotOnLink(t *testing.T) {
	t.Parallel()
	s := newSite(t, 72)
	batch(t, "", fmt.Sprintf("route add 198.51.100.72/32 via %s", s.host(false, 1).Addr()),
		fmt.Sprintf("route add 2001:db8:eeee::72/128 via %s", s.host(true, 1).Addr()))
	batch(t, s.Netns, fmt.Sprintf("route add 198.51.100.72/32 via %s", s.host(false, 3).Addr()),
		fmt.Sprintf("route add 2001:db8:eeee::72/128 via %s", s.host(true, 3).Addr()))
	n := newNode(t, speaker.Options{})
	for i, far := range []string{"198.51.100.72", "2001:db8:eeee::72"} {
		session := s.session("far "+far, i == 1, 2)
		session.Neighbor.Addr = netip.MustParseAddr(far)
		n.want(session)
		refusal(t, n, session.Peer, fmt.Sprintf("peerAddress %s is not on a link of this node, which has a route to it by "+
			"way of %s: an external peer beyond the link "+
			"needs ebgpMultiHop or multihopTTL", far, s.host(i == 1, 1).Addr()))
	}
}
