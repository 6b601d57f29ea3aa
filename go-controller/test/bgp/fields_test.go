// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// field is a field of a session or of its routes, and the resulting state in FRR.
type field struct {
	name string
	// set sets the field. All other fields have the values of site.session and site.routes.
	set func(s *site, c *bgp.Session, host int)
	// asn is the AS number that FRR expects, the node's if empty. frr are additional lines of the neighbor's
	// configuration.
	asn string
	frr []string
	// only restricts the test to "v4" or "v6" sessions.
	only string
	// neighbor and path are the expected values in FRR's JSON of the neighbor and of each route from it. "" means
	// absent, and HOST4 and HOST6 are the node's addresses.
	neighbor, path map[string]string
	// refused is part of the last error of a session that must not come up.
	refused string
	// down is set if the session must not come up and FRR must have none of its routes.
	down bool
	// untold are address families whose routes must be absent.
	untold string
}

func attributes(change func(*bgp.Attributes)) func(*site, *bgp.Session, int) {
	return func(_ *site, c *bgp.Session, _ int) {
		for prefix, a := range c.Routes {
			change(&a)
			c.Routes[prefix] = a
		}
	}
}

func session(change func(*bgp.Session)) func(*site, *bgp.Session, int) {
	return func(_ *site, c *bgp.Session, _ int) { change(c) }
}

func fields() []field {
	value := func(v uint32) *uint32 { return &v }
	return []field{
		{
			name: "source address left to the routing table", only: "v4",
			set:      session(func(c *bgp.Session) { c.Neighbor.Source = netip.Addr{} }),
			neighbor: map[string]string{"bgpState": `"Established"`},
		},
		{
			name: "nothing but what a session must have",
			neighbor: map[string]string{
				"remoteAs": "64500", "localAs": "64512", "hostForeign": `"HOST"`, "remoteRouterId": `"HOST4"`, "portLocal": "179",
				"bgpTimerHoldTimeMsecs": "90000", "bgpTimerKeepAliveIntervalMsecs": "30000",
				"gracefulRestartInfo.remoteGrMode": `"Disable"`,
			},
			path: map[string]string{
				"origin": `"IGP"`, "aspath.string": `"64500"`, "nexthops.0.ip": `"HOP"`, "peer.type": `"external"`, "valid": "true",
				"metric": "", "locPrf": "", "community": "", "largeCommunity": "",
			},
		},
		{
			name: "localASN", asn: "64777",
			set:      session(func(c *bgp.Session) { c.Neighbor.LocalASN = 64777 }),
			neighbor: map[string]string{"remoteAs": "64777"},
			path:     map[string]string{"aspath.string": `"64777"`},
		},
		{
			name: "a node's AS number of four bytes", asn: "4200000001",
			set:      session(func(c *bgp.Session) { c.Neighbor.MyASN = 4200000001 }),
			neighbor: map[string]string{"remoteAs": "4200000001"},
			path:     map[string]string{"aspath.string": `"4200000001"`},
		},
		{
			name:     "dynamicASN external",
			set:      session(func(c *bgp.Session) { c.Neighbor.PeerASN, c.Neighbor.Dynamic = 0, bgp.ExternalASN }),
			neighbor: map[string]string{"bgpState": `"Established"`},
			path:     map[string]string{"aspath.string": `"64500"`},
		},
		{
			name: "dynamicASN internal", asn: "internal",
			set: session(func(c *bgp.Session) {
				c.Neighbor.MyASN, c.Neighbor.PeerASN, c.Neighbor.Dynamic = routerASN, 0, bgp.InternalASN
			}),
			neighbor: map[string]string{"remoteAs": "64512"},
			path:     map[string]string{"aspath.string": `"Local"`, "peer.type": `"internal"`},
		},
		{
			name:    "dynamicASN internal, and the peer is external",
			set:     session(func(c *bgp.Session) { c.Neighbor.PeerASN, c.Neighbor.Dynamic = 0, bgp.InternalASN }),
			refused: "as number mismatch expected 64500, received 64512",
		},
		{
			name: "dynamicASN external, and the peer is internal", asn: "internal",
			set: session(func(c *bgp.Session) {
				c.Neighbor.MyASN, c.Neighbor.PeerASN, c.Neighbor.Dynamic = routerASN, 0, bgp.ExternalASN
			}),
			refused: "the peer's AS number is 64512, as ours: want an external one",
		},
		{
			name:    "peerASN, and it is another",
			set:     session(func(c *bgp.Session) { c.Neighbor.PeerASN = 65000 }),
			refused: "as number mismatch expected 65000, received 64512",
		},
		{
			name:    "myASN, and the peer expects another",
			set:     session(func(c *bgp.Session) { c.Neighbor.MyASN = 64999 }),
			refused: "check the AS numbers on both sides",
		},
		{
			name:     "peerPort",
			set:      session(func(c *bgp.Session) { c.Neighbor.Port = redirected }),
			neighbor: map[string]string{"bgpState": `"Established"`},
		},
		{
			name: "holdTime, keepaliveTime", frr: []string{"timers 20 60"},
			set:      session(func(c *bgp.Session) { c.Neighbor.Hold, c.Neighbor.Keepalive = 30*time.Second, time.Second }),
			neighbor: map[string]string{"bgpTimerHoldTimeMsecs": "30000"},
		},
		{
			name: "holdTime 0, never", frr: []string{"timers 3 9"},
			set:      session(func(c *bgp.Session) { c.Neighbor.Hold, c.Neighbor.Keepalive = 0, time.Second }),
			neighbor: map[string]string{"bgpState": `"Established"`, "bgpTimerHoldTimeMsecs": "0"},
		},
		{
			name: "holdTime 0 on the peer's side", frr: []string{"timers 0 0"},
			neighbor: map[string]string{"bgpState": `"Established"`, "bgpTimerHoldTimeMsecs": "0"},
		},
		{
			name:     "routerID",
			set:      session(func(c *bgp.Session) { c.Neighbor.RouterID = netip.MustParseAddr("198.51.100.77") }),
			neighbor: map[string]string{"remoteRouterId": `"198.51.100.77"`},
		},
		{
			name: "password", frr: []string{"password right"},
			set:      session(func(c *bgp.Session) { c.Neighbor.Password = "right" }),
			neighbor: map[string]string{"bgpState": `"Established"`},
		},
		{
			name: "password, and it is wrong", frr: []string{"password right"},
			set:     session(func(c *bgp.Session) { c.Neighbor.Password = "wrong" }),
			refused: "i/o timeout",
		},
		{
			name: "a password of the peer only", frr: []string{"password right"},
			refused: "i/o timeout: check the address, firewalls on the way, and that the peer has no password (TCP MD5) " +
				"for this node",
		},
		{
			name: "extended optional parameters (RFC 9072)", frr: []string{"extended-optional-parameters"},
			refused: "the peer has extended optional parameters (RFC 9072) switched on", // FRR requires them, too.
		},
		{
			name: "roles (RFC 9234)", frr: []string{"local-role provider strict-mode"},
			refused: "code 2(open) subcode 11(role mismatch): the peer requires BGP roles (RFC 9234)",
		},
		{
			name: "ebgpMultiHop", frr: []string{"ebgp-multihop 5"},
			set:      session(func(c *bgp.Session) { c.Neighbor.TTL = 5 }),
			neighbor: map[string]string{"bgpState": `"Established"`, "TTL": "5"},
		},
		{
			name:     "a peer on the link",
			neighbor: map[string]string{"TTL": "1"},
		},
		{
			name: "ttlSecurity", frr: []string{"ttl-security hops 1"},
			set:      session(func(c *bgp.Session) { c.Neighbor.SecurityHops = 1 }),
			neighbor: map[string]string{"bgpState": `"Established"`, "TTL": "255"},
		},
		{
			name: "ttlSecurity, and the peer seems far",
			set:  session(func(c *bgp.Session) { c.Neighbor.SecurityHops = 1 }),
			// The kernel drops all packets from FRR, including the answer to our SYN.
			down: true,
		},
		{
			name: "enableGracefulRestart",
			set:  session(func(c *bgp.Session) { c.Neighbor.GracefulRestart = true }),
			neighbor: map[string]string{
				"neighborCapabilities.gracefulRestart": `"advertisedAndReceived"`,
				"gracefulRestartInfo.remoteGrMode":     `"Restart"`, "gracefulRestartInfo.rBit": "true",
				"gracefulRestartInfo.nBit":                                                       "false",
				"gracefulRestartInfo.timers.receivedRestartTimer":                                "120",
				"gracefulRestartInfo.endOfRibRecv.ipv4Unicast":                                   "true",
				"gracefulRestartInfo.endOfRibRecv.ipv6Unicast":                                   "true",
				"gracefulRestartInfo.ipv4Unicast.fBit":                                           "true",
				"gracefulRestartInfo.ipv6Unicast.fBit":                                           "true",
				"addressFamilyInfo.ipv4Unicast.acceptedPrefixCounter":                            "1",
				"addressFamilyInfo.ipv6Unicast.acceptedPrefixCounter":                            "1",
				"neighborCapabilities.multiprotocolExtensions.ipv4Unicast.advertisedAndReceived": "true",
			},
			path: map[string]string{"stale": ""},
		},
		{
			name: "IPv4 alone", untold: "v6",
			set:      session(func(c *bgp.Session) { c.Neighbor.IPv6 = false }),
			neighbor: map[string]string{"neighborCapabilities.multiprotocolExtensions.ipv6Unicast.advertised": "true"},
		},
		{
			name: "IPv6 alone", untold: "v4",
			set:      session(func(c *bgp.Session) { c.Neighbor.IPv4 = false }),
			neighbor: map[string]string{"neighborCapabilities.multiprotocolExtensions.ipv4Unicast.advertised": "true"},
		},
		{
			name: "IPv4 with a next hop of IPv6", only: "v6", frr: []string{"capability extended-nexthop"},
			set: func(s *site, c *bgp.Session, host int) {
				for prefix, a := range c.Routes {
					a.NextHop = s.host(true, host).Addr()
					c.Routes[prefix] = a
				}
			},
			path: map[string]string{"nexthops.0.ip": `"HOST6"`, "nexthops.0.afi": `"ipv6"`, "valid": "true"},
		},
		{
			name: "a next hop that is not the node",
			set: func(s *site, c *bgp.Session, _ int) {
				for prefix, a := range c.Routes {
					a.NextHop = s.host(prefix.Addr().Is6(), 200).Addr()
					c.Routes[prefix] = a
				}
			},
			path: map[string]string{"nexthops.0.ip": `"GATEWAY"`, "valid": "true"},
		},
		{
			name: "localPref", asn: "internal",
			set: func(s *site, c *bgp.Session, host int) {
				c.Neighbor.MyASN = routerASN
				attributes(func(a *bgp.Attributes) { a.LocalPref = value(250) })(s, c, host)
			},
			path: map[string]string{"locPrf": "250"},
		},
		{
			name: "localPref stays inside",
			set:  attributes(func(a *bgp.Attributes) { a.LocalPref = value(250) }),
			path: map[string]string{"locPrf": ""},
		},
		{
			name: "MED",
			set:  attributes(func(a *bgp.Attributes) { a.MED = value(77) }),
			path: map[string]string{"metric": "77"},
		},
		{
			name: "AS path prepended",
			set:  attributes(func(a *bgp.Attributes) { a.Prepend = 2 }),
			path: map[string]string{"aspath.string": `"64500 64500 64500"`},
		},
		{
			name: "an internal peer's AS path is not prepended", asn: "internal",
			set: func(s *site, c *bgp.Session, host int) {
				c.Neighbor.MyASN = routerASN
				attributes(func(a *bgp.Attributes) { a.Prepend = 2 })(s, c, host)
			},
			path: map[string]string{"aspath.string": `"Local"`},
		},
		{
			name: "communities, well-known ones too",
			set:  attributes(func(a *bgp.Attributes) { a.Communities = []uint32{64500<<16 | 100, 0xffffff01} }),
			path: map[string]string{"community.string": `"64500:100 no-export"`},
		},
		{
			name: "large communities",
			set: attributes(func(a *bgp.Attributes) {
				a.LargeCommunities = []bgp.LargeCommunity{{Global: 64500, Local1: 1, Local2: 2},
					{Global: 4200000001, Local1: 3, Local2: 4}}
			}),
			path: map[string]string{"largeCommunity.string": `"64500:1:2 4200000001:3:4"`},
		},
		{
			name: "aggregates",
			set: func(s *site, c *bgp.Session, host int) {
				c.Routes = s.routes(host, fmt.Sprintf("198.18.%d.0/24", host), fmt.Sprintf("2001:db8:aaaa:%x::/64", host))
			},
			path: map[string]string{"valid": "true"},
		},
	}
}

// redirected is a port that the router's kernel redirects to the BGP port.
const redirected = 1790

// Each field is tested in sessions over IPv4 and IPv6, which carry a route of each family. One speaker runs all
// sessions.
func TestFields(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	kernel(t, s)
	n := newNode(t, speaker.Options{})
	type kept struct {
		field
		bgp.Session
		host int
		v6   bool
	}
	var all []kept
	var lines []string
	host := 1
	for _, f := range fields() {
		host++
		for _, v6 := range []bool{false, true} {
			if family := map[bool]string{false: "v4", true: "v6"}[v6]; f.only == "" || f.only == family {
				c := s.session(f.name+"/"+family, v6, host)
				c.Routes = s.routes(host, fmt.Sprintf("203.0.113.%d/32", host), fmt.Sprintf("2001:db8:ffff::%x/128", host))
				if f.set != nil {
					f.set(s, &c, host)
				}
				asn := f.asn
				if asn == "" {
					asn = fmt.Sprint(nodeASN)
				}
				lines = append(lines, s.neighbor(v6, host, asn, f.frr...)...)
				all = append(all, kept{f, c, host, v6})
			}
		}
	}
	s.configure(t, lines...)
	for _, k := range all {
		n.want(k.Session)
	}
	for _, k := range all {
		t.Run(k.Peer, func(t *testing.T) {
			if k.refused != "" {
				refusal(t, n, k.Peer, k.refused)
				return
			}
			if !k.down {
				n.established(t, k.Peer)
			}
			eventually(t, func(ctx context.Context) error { return s.says(ctx, k.field, k.Session, k.host, k.v6) })
		})
	}
}
