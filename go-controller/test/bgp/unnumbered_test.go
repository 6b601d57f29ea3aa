// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// unnumbered configures the router for a neighbor on its interface, and returns the session of the node's end.
func (s *site) unnumbered(t *testing.T, dev, peer string, lines ...string) bgp.Session {
	t.Helper()
	config := []string{"interface " + peer, " no ipv6 nd suppress-ra", " ipv6 nd ra-interval 1", "exit",
		fmt.Sprintf("router bgp %d", routerASN), fmt.Sprintf(" neighbor %s interface remote-as external", peer)}
	for _, line := range lines {
		config = append(config, fmt.Sprintf(" neighbor %s %s", peer, line))
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		config = append(config, " address-family "+family+" unicast", fmt.Sprintf("  neighbor %s activate", peer),
			" exit-address-family")
	}
	s.configure(t, config...)
	t.Cleanup(func() {
		if t.Failed() {
			s.logNeighbor(t, peer)
		}
	})
	c := s.session("tor", false, 2)
	c.Neighbor.Addr, c.Neighbor.Source, c.Neighbor.Interface = netip.Addr{}, netip.Addr{}, dev
	return c
}

// logNeighbor logs what the router knows of its neighbor on an interface, and the passwords that its listening sockets
// have for which addresses.
func (s *site) logNeighbor(t *testing.T, on string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var neighbors any
	err := s.Show(ctx, "show bgp neighbors "+on+" json", &neighbors)
	t.Logf("the router's neighbor: %v, %v", neighbors, err)
	sockets, err := exec.CommandContext(ctx, "ip", "netns", "exec", s.Netns, "ss", "-tlni").CombinedOutput()
	t.Logf("its sockets: %s, %v", sockets, err)
}

// On a link with only link-local addresses, each side discovers the other by Router Advertisements. Passwords work
// there, too.
func TestUnnumbered(t *testing.T) {
	t.Parallel()
	s := newSite(t, 30)
	s.link(t, "un0", "eth1")
	c := s.unnumbered(t, "un0", "eth1", "password right")
	n := newNode(t, speaker.Options{})
	c.Neighbor.Password = "right"
	prefixes := []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32"), netip.MustParsePrefix("2001:db8:ffff::1/128")}
	// The zero next hop is our link-local address.
	c.Routes = map[netip.Prefix]bgp.Attributes{prefixes[0]: {}, prefixes[1]: {}}
	n.want(c)
	state := n.established(t, "tor")
	if state.Addr.Zone() != "un0" || !state.Addr.IsLinkLocalUnicast() || state.Interface != "un0" {
		t.Errorf("state %+v, want a link-local address on un0", state)
	}
	s.has(t, true, prefixes...)
	for _, p := range prefixes {
		if out, err := s.kernelRoute(t.Context(), p); err != nil || !strings.Contains(out, "via inet6 fe80::") &&
			!strings.Contains(out, "via fe80::") || !strings.Contains(out, "dev eth1") {
			t.Errorf("route to %s in the router's kernel: %q (%v)", p, out, err)
		}
	}
	// If the router could no longer be found, the session continues and its routes can still change.
	c.Neighbor.Interface = "absent0"
	more := netip.MustParsePrefix("203.0.113.2/32")
	c.Routes = map[netip.Prefix]bgp.Attributes{prefixes[0]: {}, prefixes[1]: {}, more: {}}
	n.want(c)
	eventually(t, func(context.Context) error {
		if now := n.state("tor"); !strings.Contains(now.LastError, "look for a router on interface absent0") ||
			!now.Since.Equal(state.Since) {
			return fmt.Errorf("state %+v", now)
		}
		return nil
	})
	s.has(t, true, append(prefixes, more)...)
	c.Neighbor.Interface = "un0"
	c.Routes = map[netip.Prefix]bgp.Attributes{prefixes[0]: {}, prefixes[1]: {}}
	n.want(c)
	s.has(t, false, more)
	if now := n.state("tor"); now.Phase != speaker.Established || !now.Since.Equal(state.Since) {
		t.Errorf("state %+v, was %+v", now, state)
	}
	// The error names a missing interface, and the session comes up on an existing one.
	n.forget("tor")
	s.has(t, false, prefixes...)
	c.Neighbor.Interface = "absent0"
	n.want(c)
	refusal(t, n, "tor", "look for a router on interface absent0")
	c.Neighbor.Interface = "un0"
	n.want(c)
	n.established(t, "tor")
	s.has(t, true, prefixes...)
}

// The interface to the router is deleted and created again under the same name, as by a network manager that applies a
// bond or a VLAN again. It has another index then.
func TestUnnumberedInterfaceIsRecreated(t *testing.T) {
	t.Parallel()
	s := newSite(t, 31)
	s.link(t, "un1", "eth1")
	c := s.unnumbered(t, "un1", "eth1")
	c.Neighbor.Hold, c.Neighbor.Keepalive = 9*time.Second, 3*time.Second // by whose end the session is lost
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	c.Routes = map[netip.Prefix]bgp.Attributes{prefix: {}}
	n := newNode(t, speaker.Options{})
	n.want(c)
	was := n.established(t, "tor")
	s.has(t, true, prefix)
	batch(t, "", "link del un1")
	s.link(t, "un1", "eth1")
	eventually(t, func(context.Context) error {
		if now := n.state("tor"); now.Phase != speaker.Established || now.Local == was.Local {
			return fmt.Errorf("state %+v", now)
		}
		return nil
	})
	s.has(t, true, prefix)
}

// Cloud routers have IPv4 link-local addresses, which need no zone (RFC 3927).
func TestLinkLocalIPv4(t *testing.T) {
	t.Parallel()
	s := newSite(t, 32)
	router, own := netip.MustParseAddr("169.254.32.1"), netip.MustParseAddr("169.254.32.2")
	batch(t, "", fmt.Sprintf("addr add %s/24 dev %s", own, s.dev))
	batch(t, s.Netns, fmt.Sprintf("addr add %s/24 dev eth0", router))
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), fmt.Sprintf(" neighbor %s remote-as %d", own, nodeASN),
		" address-family ipv4 unicast", fmt.Sprintf("  neighbor %s activate", own))
	c := s.session("tor", false, 2)
	c.Neighbor.Addr, c.Neighbor.Source = router, netip.Addr{}
	c.Routes = s.routes(2, "203.0.113.1/32")
	n := newNode(t, speaker.Options{})
	n.want(c)
	if state := n.established(t, "tor"); state.Local != own {
		t.Errorf("state %+v, want the local address %s", state, own)
	}
	s.has(t, true, netip.MustParsePrefix("203.0.113.1/32"))
}
