// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// offer is a prefix that a node may advertise because of an advertisement.
type offer struct {
	prefix netip.Prefix
	ad     *world.Advertisement
	// hop is the gateway that is the next hop; the zero Addr if it is the node.
	hop netip.Addr
}

// routesToAdvertise returns the distinct prefixes that a node may advertise to any peer, sorted by prefix, then by the
// age of the advertisement.
func (l *Layout) routesToAdvertise(n *world.Node) []offer {
	if n.NetworkUnavailable || len(l.ads) == 0 {
		return nil
	}
	var list []offer
	for _, s := range l.world.Services {
		for _, a := range l.Advertised(s) {
			f := world.FamilyOf(a)
			for _, ad := range l.selecting(s, a) {
				if !containsName(ad.Nodes, n.Name) || !l.serves(s, f, l.mustBeOn(s, ad, n)) {
					continue
				}
				o := offer{ad: ad}
				if ad.ByGateway {
					o.hop = l.gateway(a)
					// A route to the gateway's own address through itself has no effect.
					if !o.hop.IsValid() || o.hop == a {
						continue
					}
				}
				for o.prefix = range l.prefixes(s, ad, a) {
					list = append(list, o)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b offer) int {
		return cmp.Or(a.prefix.Addr().Compare(b.prefix.Addr()), cmp.Compare(a.prefix.Bits(), b.prefix.Bits()),
			cmp.Compare(l.rank[a.ad], l.rank[b.ad]), a.hop.Compare(b.hop))
	})
	return slices.Compact(list)
}

// mustBeOn returns the node that must have the endpoints, "" for any. A node forwards to endpoints on other nodes. So
// does a gateway, whatever the traffic policy is: OVN decides which nodes take part there.
func (l *Layout) mustBeOn(s *world.Service, ad *world.Advertisement, n *world.Node) string {
	if s.LocalPolicy && !ad.ByGateway {
		return n.Name
	}
	return ""
}

// gateway returns the external address of the shard that contains an address. It returns the zero Addr if no shard does
// or the shard's address is not known.
func (l *Layout) gateway(a netip.Addr) netip.Addr {
	shard, ok := l.home(l.allocation.PoolOf(a), a)
	if !ok {
		return netip.Addr{}
	}
	for _, anchor := range l.domains[shard.Domain].Anchors[shard.Index] {
		if world.FamilyOf(anchor) == world.FamilyOf(a) {
			return anchor
		}
	}
	return netip.Addr{}
}

// routes returns the routes that a node advertises to a peer.
func (l *Layout) routes(n *world.Node, p *world.Peer, b Neighbor, offers []offer,
	unions map[string]Attributes) map[netip.Prefix]Attributes {
	routes := make(map[netip.Prefix]Attributes, len(offers))
	var advertisedBy []*world.Advertisement
	for i := 0; i < len(offers); {
		prefix := offers[i].prefix
		own, ownKnown := nextHop(p, n, prefix.Addr())
		var hop netip.Addr
		advertisedBy = advertisedBy[:0]
		for ; i < len(offers) && offers[i].prefix == prefix; i++ {
			o := offers[i]
			if !advertises(o.ad, p.Name) || !o.hop.IsValid() && !ownKnown {
				continue
			}
			if len(advertisedBy) == 0 {
				hop = cmp.Or(o.hop, own)
			}
			advertisedBy = append(advertisedBy, o.ad)
		}
		if len(advertisedBy) == 0 || prefix.Addr().Is4() && !b.IPv4 || prefix.Addr().Is6() && !b.IPv6 {
			continue
		}
		attributes := l.union(advertisedBy, unions)
		attributes.NextHop = hop
		routes[prefix] = attributes
	}
	return routes
}

// nextHop returns the node's next hop for a peer, and false if there is none. It has the family of the prefix, or is an
// IPv6 address for an IPv4 prefix in an IPv6 session (RFC 8950). On a link without addresses it is the zero Addr, which
// stands for the link-local one.
func nextHop(p *world.Peer, n *world.Node, prefix netip.Addr) (netip.Addr, bool) {
	if !p.Addr.IsValid() {
		return netip.Addr{}, true
	}
	var hop netip.Addr
	for _, a := range n.External {
		if a.Is4() == prefix.Is4() || prefix.Is4() && p.Addr.Is6() && !hop.IsValid() {
			hop = a
		}
	}
	return hop, hop.IsValid()
}

// union merges the attributes that advertisements, the oldest first, set for one prefix: all their communities, and
// each other attribute from the oldest advertisement that sets it.
func (l *Layout) union(ads []*world.Advertisement, made map[string]Attributes) Attributes {
	var key strings.Builder
	for _, ad := range ads {
		key.WriteString(ad.Name)
		key.WriteByte('/')
	}
	if u, ok := made[key.String()]; ok {
		return u
	}
	var u Attributes
	for _, ad := range ads {
		u.LocalPref = cmp.Or(u.LocalPref, ad.LocalPref)
		u.MED = cmp.Or(u.MED, ad.MED)
		u.Prepend = cmp.Or(u.Prepend, ad.Prepend)
		u.Communities = append(u.Communities, ad.Communities...)
		for _, c := range ad.LargeCommunities {
			u.LargeCommunities = append(u.LargeCommunities, LargeCommunity{c[0], c[1], c[2]})
		}
	}
	slices.Sort(u.Communities)
	u.Communities = slices.Compact(u.Communities)
	slices.SortFunc(u.LargeCommunities, LargeCommunity.compare)
	u.LargeCommunities = slices.Compact(u.LargeCommunities)
	made[key.String()] = u
	return u
}
