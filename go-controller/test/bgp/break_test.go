// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/routes"
)

// lost waits until an Established session has ended, and returns its first state after that. The error of the next
// attempt to dial may have replaced the reason already.
func (n *node) lost(t *testing.T, peer string) (state speaker.State) {
	t.Helper()
	eventually(t, func(context.Context) error {
		n.recording.Lock()
		defer n.recording.Unlock()
		up := false
		for _, s := range n.history[peer] {
			if up && s.Phase != speaker.Established {
				state = s
			}
			up = s.Phase == speaker.Established
		}
		if up || state.Peer == "" {
			return fmt.Errorf("session %s has not ended", peer)
		}
		return nil
	})
	return state
}

// has waits until the router's kernel has routes to all prefixes, or to none of them.
func (s *site) has(t *testing.T, present bool, prefixes ...netip.Prefix) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		for _, p := range prefixes {
			out, err := s.kernelRoute(ctx, p)
			if err != nil {
				return err
			}
			if (len(out) > 0) != present {
				return fmt.Errorf("route to %s in the router's kernel: %q", p, out)
			}
		}
		return nil
	})
}

// balances waits until the router's kernel has routes to all prefixes by way of all hosts. To replace an IPv6 route, as
// by one with more next hops, zebra deletes it and adds the new one.
func (s *site) balances(t *testing.T, prefixes []netip.Prefix, hosts ...int) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		for _, p := range prefixes {
			out, err := s.kernelRoute(ctx, p)
			if err != nil {
				return err
			}
			for _, host := range hosts {
				if hop := s.host(p.Addr().Is6(), host).Addr(); !strings.Contains(out, fmt.Sprintf("via %s ", hop)) {
					return fmt.Errorf("route to %s in the router's kernel: %q, want next hop %s", p, out, hop)
				}
			}
		}
		return nil
	})
}

// kernelRoute returns the route to a prefix in the router's kernel as ip(8) shows it, or an empty string.
func (s *site) kernelRoute(ctx context.Context, p netip.Prefix) (string, error) {
	family := "-4"
	if p.Addr().Is6() {
		family = "-6"
	}
	out, err := exec.CommandContext(ctx, "ip", "-n", s.Netns, family, "route", "show", p.String()).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// A router is killed and restarted, removes us from its configuration for a while, or its link flaps. The session
// returns by itself with all routes, and reports the error in the meantime.
func TestSessionReturns(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name string
		v6   bool
		// away disables the router, and back restores it.
		away, back func(*testing.T, *site)
		// lost is part of the error when the session ends, down is part of the error afterwards.
		lost, down string
		received   uint64 // NOTIFICATIONs
		// hold is the hold time if its end is how the session is lost.
		hold time.Duration
	}{
		{
			name: "router killed", lost: "the connection was lost", down: "connection refused",
			away: func(t *testing.T, s *site) {
				if err := s.Kill(frr.BGPD); err != nil {
					t.Fatal(err)
				}
			},
			back: func(t *testing.T, s *site) {
				if err := s.StartDaemon(t.Context(), frr.BGPD); err != nil {
					t.Fatal(err)
				}
				s.configure(t, slices.Concat(s.base(), s.neighbor(false, 2, nodeASN))...)
			},
		},
		{
			name: "configuration removed", v6: true, lost: "received notification: code 6(cease) subcode 3(peer deconfigured)",
			down: "check that this node is configured as a neighbor", received: 1,
			away: func(t *testing.T, s *site) {
				s.configure(t, fmt.Sprintf("router bgp %d", routerASN), fmt.Sprintf(" no neighbor %s", s.host(true, 2).Addr()))
			},
			back: func(t *testing.T, s *site) { s.configure(t, s.neighbor(true, 2, nodeASN)...) },
		},
		{
			name: "link flaps", lost: "hold timer expired", down: "i/o timeout", hold: 3 * time.Second,
			away: func(t *testing.T, s *site) { batch(t, s.Netns, "link set eth0 down") },
			back: func(t *testing.T, s *site) {
				batch(t, s.Netns, "link set eth0 up", fmt.Sprintf("addr replace %s dev eth0 nodad", s.host(true, 1)))
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 10+i)
			s.configure(t, s.neighbor(c.v6, 2, nodeASN)...)
			n := newNode(t, speaker.Options{})
			session := s.session("tor", c.v6, 2)
			if c.hold > 0 {
				session.Neighbor.Hold, session.Neighbor.Keepalive = c.hold, c.hold/3
			}
			session.Routes = s.routes(2, "203.0.113.1/32", "2001:db8:ffff::1/128")
			prefixes := []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32"), netip.MustParsePrefix("2001:db8:ffff::1/128")}
			n.want(session)
			n.established(t, "tor")
			s.has(t, true, prefixes...)
			c.away(t, s)
			state := n.lost(t, "tor")
			if !strings.Contains(state.LastError, c.lost) {
				t.Errorf("last error %q, want %q in it", state.LastError, c.lost)
			}
			if state.Pending != len(prefixes) || state.NotificationsReceived != c.received {
				t.Errorf("%d prefixes are pending, want %d; %d NOTIFICATIONs were received, want %d", state.Pending,
					len(prefixes), state.NotificationsReceived, c.received)
			}
			s.has(t, false, prefixes...)
			refusal(t, n, "tor", c.down)
			c.back(t, s)
			n.established(t, "tor")
			s.has(t, true, prefixes...)
		})
	}
}

// deletions records routes to the prefixes of this file that are deleted in the router's kernel.
type deletions struct {
	mu     sync.Mutex
	routes []string
}

func (s *site) deletions(t *testing.T) *deletions {
	t.Helper()
	d := &deletions{}
	if err := routes.Watch(t.Context(), s.Netns, func(c routes.Change, err error) {
		if err != nil {
			t.Errorf("the router's routes: %v", err)
			return
		}
		if to := c.Prefix.String(); c.Deleted &&
			(strings.HasPrefix(to, "203.0.113.") || strings.HasPrefix(to, "2001:db8:ffff:")) {
			d.mu.Lock()
			d.routes = append(d.routes, to)
			d.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *deletions) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.routes)
}

// A daemon is killed and restarted. With graceful restart the router's kernel keeps each route, and deletes only
// routes that are no longer desired. Without it, all routes are deleted.
func TestKilledDaemon(t *testing.T) {
	t.Parallel()
	for i, graceful := range []bool{true, false} {
		t.Run(fmt.Sprintf("graceful restart %v", graceful), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 20+i)
			s.configure(t, slices.Concat(s.neighbor(false, 2, nodeASN), s.neighbor(true, 3, nodeASN))...)
			var prefixes []netip.Prefix
			for p := range 100 {
				prefixes = append(prefixes, netip.MustParsePrefix(fmt.Sprintf("203.0.113.%d/32", p)),
					netip.MustParsePrefix(fmt.Sprintf("2001:db8:ffff::%x/128", p+1)))
			}
			var desired []bgp.Session
			for host := 2; host <= 3; host++ {
				c := s.session(fmt.Sprint(host), host == 3, host)
				c.Neighbor.GracefulRestart = graceful
				c.Routes = map[netip.Prefix]bgp.Attributes{}
				for _, p := range prefixes {
					c.Routes[p] = bgp.Attributes{NextHop: s.host(p.Addr().Is6(), host).Addr()}
				}
				desired = append(desired, c)
			}
			first := alone(t, desired...)
			s.balances(t, prefixes, 2, 3)
			gone := s.deletions(t)
			kill(first)
			s.down(t)
			if !graceful {
				s.has(t, false, prefixes...)
				eventually(t, func(context.Context) error { // otherwise the result of the other case would be meaningless
					unseen := slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool {
						return slices.Contains(gone.seen(), p.String())
					})
					if len(unseen) > 0 {
						return fmt.Errorf("not seen to be deleted: %v", unseen)
					}
					return nil
				})
				return
			}
			last := netip.MustParsePrefix("203.0.113.99/32")
			for _, c := range desired {
				delete(c.Routes, last)
			}
			alone(t, desired...)
			s.has(t, false, last)
			s.accepted(t, 99)
			s.has(t, true, slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool { return p == last })...)
			for _, to := range gone.seen() {
				if to != last.String() {
					t.Errorf("deleted while the daemon restarted: %s", to)
				}
			}
		})
	}
}

// A router dials a daemon that was killed, and the next one, which starts at once, dials the router. FRR 8.4 deletes a
// dynamic neighbor whose session becomes Established while its own attempt fails, and with it the routes.
func TestRouterDials(t *testing.T) {
	t.Parallel()
	s := newSite(t, 24)
	s.configure(t, "log stdout debugging", "debug bgp neighbor-events")
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " bgp graceful-restart", " neighbor nodes peer-group",
		fmt.Sprintf(" neighbor nodes remote-as %d", nodeASN), " bgp listen range "+s.v4.String()+" peer-group nodes",
		" address-family ipv4 unicast", "  neighbor nodes activate")
	c := s.session("tor", false, 2)
	c.Neighbor.GracefulRestart, c.Neighbor.IPv6 = true, false
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	c.Routes = s.routes(2, prefix.String())
	first := alone(t, c)
	s.has(t, true, prefix)
	gone, before := s.deletions(t), len(s.log(t))
	kill(first)
	alone(t, c)
	accepts := regexp.MustCompile(`\[Event\] (BGP )?connection from (host )?` + c.Neighbor.Source.String())
	eventually(t, func(ctx context.Context) error {
		if !accepts.MatchString(s.log(t)[before:]) {
			return fmt.Errorf("no connection was accepted: %s", s.log(t)[before:])
		}
		state, err := s.neighborState(ctx, c.Neighbor.Source.String())
		if got := lookup(state, "bgpState"); err != nil || got != `"Established"` {
			return fmt.Errorf("the session is %s (%w)", got, err)
		}
		return nil
	})
	s.keepsRoutes(t, c, gone)
}

// accepted waits until the router has n IPv4 routes from both hosts and none of them is stale.
func (s *site) accepted(t *testing.T, n int) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		for host := 2; host <= 3; host++ {
			state, err := s.neighborState(ctx, s.host(host == 3, host).Addr().String())
			if got := lookup(state, "addressFamilyInfo.ipv4Unicast.acceptedPrefixCounter"); err != nil || got != fmt.Sprint(n) {
				return fmt.Errorf("%s routes accepted from host %d (%w)", got, host, err)
			}
			if got := lookup(state, "bgpState"); got != `"Established"` {
				return fmt.Errorf("session with host %d is %s", host, got)
			}
		}
		return nil
	})
}

// down waits until the router has detected that both hosts are gone.
func (s *site) down(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		for host := 2; host <= 3; host++ {
			state, err := s.neighborState(ctx, s.host(host == 3, host).Addr().String())
			if got := lookup(state, "bgpState"); err != nil || got == `"Established"` {
				return fmt.Errorf("session with host %d is %s (%w)", host, got, err)
			}
		}
		return nil
	})
}

// A session that is lost while the daemon is alive keeps its routes, too.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	s, n, c := graceful(t, 22)
	was := n.state("tor")
	gone := s.deletions(t)
	run(t, "ss", "-K", "dst", s.host(false, 1).Addr().String(), "dport", "=", "179")
	eventually(t, func(context.Context) error {
		if now := n.state("tor"); now.Phase != speaker.Established || !now.Since.After(was.Since) {
			return fmt.Errorf("state %+v", now)
		}
		return nil
	})
	s.keepsRoutes(t, c, gone)
}

// graceful returns a router with an Established session that uses graceful restart and has a route.
func graceful(t *testing.T, subnet int) (*site, *node, bgp.Session) {
	t.Helper()
	s := newSite(t, subnet)
	s.configure(t, s.neighbor(false, 2, nodeASN)...)
	n := newNode(t, speaker.Options{})
	c := s.session("tor", false, 2)
	c.Neighbor.GracefulRestart = true
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	c.Routes = s.routes(2, prefix.String())
	n.want(c)
	n.established(t, "tor")
	s.has(t, true, prefix)
	return s, n, c
}

// keepsRoutes checks that the router's kernel has the session's routes and has not deleted any in the meantime.
func (s *site) keepsRoutes(t *testing.T, c bgp.Session, gone *deletions) {
	t.Helper()
	s.has(t, true, slices.Collect(maps.Keys(c.Routes))...)
	if deleted := gone.seen(); len(deleted) > 0 {
		t.Errorf("deleted: %v", deleted)
	}
}
