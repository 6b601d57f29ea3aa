// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// A router that has activated only IPv4 for us receives no IPv6 route, and none is reported as advertised until it
// activates IPv6.
func TestFamilyThatTheRouterDidNotActivate(t *testing.T) {
	t.Parallel()
	s := newSite(t, 36)
	us := s.host(false, 2).Addr()
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), fmt.Sprintf(" neighbor %s remote-as %d", us, nodeASN),
		" address-family ipv4 unicast", fmt.Sprintf("  neighbor %s activate", us), " exit-address-family")
	n, c := newNode(t, speaker.Options{}), s.session("tor", false, 2)
	v4, v6 := netip.MustParsePrefix("203.0.113.1/32"), netip.MustParsePrefix("2001:db8:ffff::1/128")
	c.Routes = s.routes(2, v4.String(), v6.String())
	n.want(c)
	n.established(t, "tor")
	// A session that takes more than a second to send its routes is reported before it has sent them.
	eventually(t, func(context.Context) error {
		if is := n.state("tor"); is.Families != (speaker.Families{IPv4: true}) || is.IPv4 != 1 || is.IPv6 != 0 ||
			is.Pending != 1 || !strings.Contains(is.LastError, "IPv6 unicast was not negotiated") {
			return fmt.Errorf("state %+v", is)
		}
		return nil
	})
	s.has(t, true, v4)
	s.has(t, false, v6)
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " address-family ipv6 unicast",
		fmt.Sprintf("  neighbor %s activate", us), " exit-address-family")
	eventually(t, func(context.Context) error {
		if is := n.state("tor"); is.Families != (speaker.Families{IPv4: true, IPv6: true}) || is.IPv6 != 1 ||
			is.Pending != 0 || strings.Contains(is.LastError, "not negotiated") {
			return fmt.Errorf("state %+v", is)
		}
		return nil
	})
	s.has(t, true, v4, v6)
}
