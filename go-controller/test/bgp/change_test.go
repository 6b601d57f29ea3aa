// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// A change of routes sends only the differences in the existing session, as the speaker counts them, and nothing if
// there are no differences.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.configure(t, s.neighbor(false, 2, nodeASN)...)
	n := newNode(t, speaker.Options{})
	from := s.host(false, 2).Addr()
	c := s.session("tor", false, 2)
	one, other := netip.MustParsePrefix("203.0.113.1/32"), netip.MustParsePrefix("2001:db8:ffff::1/128")
	c.Routes = s.routes(2, one.String(), other.String(), "203.0.113.2/32", "203.0.113.3/32")
	n.want(c)
	was := n.established(t, "tor") // FRR refuses connections for a second after a configuration change.
	shown := func(prefix netip.Prefix, key, want string) func(context.Context) error {
		return func(ctx context.Context) error {
			path, err := s.path(ctx, prefix, from.String())
			if want == "gone" {
				if err == nil {
					return fmt.Errorf("%s is still there", prefix)
				}
				return nil
			}
			if got := lookup(path, key); err == nil && got != want {
				return fmt.Errorf("%s: %s is %s, want %s", prefix, key, got, want)
			}
			return err
		}
	}
	eventually(t, shown(one, "valid", "true"))
	eventually(t, shown(other, "valid", "true"))
	told := uint64(0)
	tells := func(more int) {
		told += uint64(more)
		eventually(t, func(context.Context) error {
			if now := n.state("tor").Updates; now != told {
				return fmt.Errorf("%d routes advertised and withdrawn, want %d", now, told)
			}
			return nil
		})
	}
	tells(len(c.Routes))
	for _, step := range []struct {
		name    string
		change  func(routes map[netip.Prefix]bgp.Attributes)
		updates int
		shown   func(context.Context) error
	}{
		{"the same again", func(map[netip.Prefix]bgp.Attributes) {}, 0, shown(one, "valid", "true")},
		{"a community more", func(r map[netip.Prefix]bgp.Attributes) {
			r[one] = bgp.Attributes{NextHop: r[one].NextHop, Communities: []uint32{64500<<16 | 7}}
		}, 1, shown(one, "community.string", `"64500:7"`)},
		{"a MED of a route of IPv6", func(r map[netip.Prefix]bgp.Attributes) {
			med := uint32(5)
			r[other] = bgp.Attributes{NextHop: r[other].NextHop, MED: &med}
		}, 1, shown(other, "metric", "5")},
		{"the same by other pointers", func(r map[netip.Prefix]bgp.Attributes) {
			med := uint32(5)
			r[other] = bgp.Attributes{NextHop: r[other].NextHop, MED: &med}
		}, 0, shown(other, "metric", "5")},
		{"a route more", func(r map[netip.Prefix]bgp.Attributes) {
			maps.Copy(r, s.routes(2, "203.0.113.9/32"))
		}, 1, shown(netip.MustParsePrefix("203.0.113.9/32"), "valid", "true")},
		{"a route less", func(r map[netip.Prefix]bgp.Attributes) { delete(r, one) }, 1, shown(one, "", "gone")},
		{"a route of IPv6 less", func(r map[netip.Prefix]bgp.Attributes) { delete(r, other) }, 1, shown(other, "", "gone")},
	} {
		c.Routes = maps.Clone(c.Routes)
		step.change(c.Routes)
		n.want(c)
		eventually(t, step.shown)
		tells(step.updates)
		if now := n.state("tor"); !now.Since.Equal(was.Since) {
			t.Errorf("%s: the session is of %s, was of %s", step.name, now.Since, was.Since)
		}
	}
	if state := n.state("tor"); state.IPv4 != 3 || state.IPv6 != 0 || state.LastErrorTime != was.LastErrorTime {
		t.Errorf("state %+v, want 3 routes of IPv4, none of IPv6, and no error since %+v", state, was)
	}
}

// The error names a route that can't be advertised. Other routes are not affected.
func TestUnadvertisableAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	s.configure(t, s.neighbor(true, 2, nodeASN)...)
	n := newNode(t, speaker.Options{})
	c := s.session("tor", true, 2)
	c.Routes = s.routes(2, "203.0.113.1/32", "2001:db8:ffff::1/128")
	bad := netip.MustParsePrefix("2001:db8:ffff::bad/128")
	c.Routes[bad] = bgp.Attributes{NextHop: s.host(false, 2).Addr()}
	n.want(c)
	n.established(t, "tor")
	eventually(t, func(ctx context.Context) error {
		_, err := s.path(ctx, netip.MustParsePrefix("203.0.113.1/32"), s.host(true, 2).Addr().String())
		return err
	})
	if state := n.state("tor"); !strings.Contains(state.LastError,
		"route to 2001:db8:ffff::bad/128: next hop 10.3.0.2: want one of IPv6") {
		t.Errorf("last error %q", state.LastError)
	}
}

// A password that changes on both sides takes effect without further action, whether the node or the router changes
// first.
func TestPasswordRotates(t *testing.T) {
	t.Parallel()
	s := newSite(t, 4)
	s.configure(t, slices.Concat(s.neighbor(false, 2, nodeASN, "password old"),
		s.neighbor(true, 3, nodeASN, "password old"))...)
	n := newNode(t, speaker.Options{})
	a, b := s.session("v4", false, 2), s.session("v6", true, 3)
	a.Neighbor.Password, b.Neighbor.Password = "old", "old"
	n.want(a)
	n.want(b)
	n.established(t, "v4")
	was := n.established(t, "v6")
	a.Neighbor.Password, b.Neighbor.Password = "new", "new"
	n.want(a)
	refusal(t, n, "v4", "i/o timeout")
	s.configure(t, s.neighbor(false, 2, nodeASN, "password new")...)
	n.established(t, "v4")
	s.configure(t, s.neighbor(true, 3, nodeASN, "password new")...)
	n.want(b)
	eventually(t, func(context.Context) error {
		if now := n.state("v6"); now.Phase != speaker.Established || !now.Since.After(was.Since) {
			return fmt.Errorf("state %+v", now)
		}
		return nil
	})
}

// A leaving node first advertises routes with the lowest preference, then withdraws them, and then ends the session
// with an administrative shutdown. Afterwards it returns.
func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	s := newSite(t, 5)
	s.configure(t, slices.Concat(s.neighbor(false, 2, nodeASN), s.neighbor(true, 3, "internal"))...)
	s.logUpdates(t)
	n := newNode(t, speaker.Options{DrainTime: time.Second})
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	sessions := []bgp.Session{s.session("external", false, 2), s.session("internal", true, 3)}
	sessions[1].Neighbor.MyASN = routerASN
	for i, c := range sessions {
		sessions[i].Routes = s.routes(2+i, prefix.String())
		n.want(sessions[i])
		n.established(t, c.Peer)
	}
	from := map[string]string{"external": s.host(false, 2).Addr().String(), "internal": s.host(true, 3).Addr().String()}
	for _, c := range sessions {
		eventually(t, func(ctx context.Context) error { _, err := s.path(ctx, prefix, from[c.Peer]); return err })
	}
	for _, c := range sessions {
		c.Leaving = true
		n.want(c)
	}
	s.drained(t, from["external"], "", 0)
	s.drained(t, from["internal"], "localpref 0, ", 0)
	for _, c := range sessions {
		eventually(t, func(ctx context.Context) error {
			if _, err := s.path(ctx, prefix, from[c.Peer]); err == nil {
				return fmt.Errorf("the route of %s is still there", c.Peer)
			}
			if phase := n.state(c.Peer).Phase; phase != speaker.Idle {
				return fmt.Errorf("session %s is %s", c.Peer, phase)
			}
			state, err := s.neighborState(ctx, from[c.Peer])
			if why := lookup(state, "lastNotificationReason"); err != nil || why != `"Cease/Administrative Shutdown"` {
				return fmt.Errorf("%s ended by %s: %w", c.Peer, why, err)
			}
			return nil
		})
	}
	for _, c := range sessions {
		n.want(c)
		n.established(t, c.Peer)
		eventually(t, func(ctx context.Context) error {
			path, err := s.path(ctx, prefix, from[c.Peer])
			if community := lookup(path, "community.string"); err != nil || community != "" {
				return fmt.Errorf("communities %s, %w", community, err)
			}
			return nil
		})
	}
}

// Ten peers each receive the routes of their own session, and none from other peers. If a peer is removed, only its
// session ends.
func TestTenPeers(t *testing.T) {
	t.Parallel()
	s := newSite(t, 6)
	n := newNode(t, speaker.Options{})
	var lines []string
	for i := range 10 {
		lines = append(lines, s.neighbor(i%2 == 1, 2+i, nodeASN)...)
	}
	s.configure(t, lines...)
	own := func(i int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("203.0.113.%d/32", 100+i)) }
	for i := range 10 {
		c := s.session(fmt.Sprint(i), i%2 == 1, 2+i)
		c.Routes = s.routes(2+i, "203.0.113.1/32", own(i).String())
		n.want(c)
	}
	var since []time.Time
	for i := range 10 {
		since = append(since, n.established(t, fmt.Sprint(i)).Since)
	}
	for i := range 10 {
		from := s.host(i%2 == 1, 2+i).Addr().String()
		eventually(t, func(ctx context.Context) error {
			for _, prefix := range []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32"), own(i)} {
				if _, err := s.path(ctx, prefix, from); err != nil {
					return err
				}
			}
			return nil
		})
		if _, err := s.path(t.Context(), own((i+1)%10), from); err == nil {
			t.Errorf("peer %d receives a route of peer %d", i, (i+1)%10)
		}
	}
	n.forget("3")
	eventually(t, func(ctx context.Context) error {
		if _, err := s.path(ctx, own(3), s.host(true, 5).Addr().String()); err == nil {
			return fmt.Errorf("the route of a peer that was removed is still there")
		}
		if left := len(n.States()); left != 9 {
			return fmt.Errorf("%d sessions are left", left)
		}
		return nil
	})
	for i, was := range since {
		if now := n.state(fmt.Sprint(i)).Since; i != 3 && !now.Equal(was) {
			t.Errorf("the session of peer %d is of %s, was of %s", i, now, was)
		}
	}
}

// Parameters that are not in the OPEN message change in the existing session. Others need a new session, which does
// not lose a route with graceful restart because the router receives no NOTIFICATION.
func TestEdits(t *testing.T) {
	t.Parallel()
	s, n, c := graceful(t, 7)
	was := n.state("tor")
	gone := s.deletions(t)
	c.Neighbor.Connect, c.Neighbor.Keepalive = 7*time.Second, time.Second
	n.want(c)
	// The session of the next edit is the second one: this edit does not need one.
	c.Neighbor.Hold = 30 * time.Second
	n.want(c)
	eventually(t, func(ctx context.Context) error {
		state, err := s.neighborState(ctx, s.host(false, 2).Addr().String())
		if now := n.state("tor"); now.Phase != speaker.Established || !now.Since.After(was.Since) ||
			lookup(state, "connectionsEstablished") != "2" {
			return fmt.Errorf("state %+v: %w", now, err)
		}
		return nil
	})
	s.keepsRoutes(t, c, gone)
}
