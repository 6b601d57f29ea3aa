// SPDX-License-Identifier: Apache-2.0

package place

import (
	"net/netip"
	"slices"
)

// vips are the VIPs of one family of a shard, with the prefix lengths of their subnets, those of the oldest Services
// first. routed are those in subnets with a next hop. One of these is the anchor: the shard's router has the next
// hop of its anchor's subnet, so that of one without a next hop would take the default route from all others.
type vips struct{ routed, others []netip.Prefix }

// with returns the VIPs with one more, that of the youngest Service.
func (v vips) with(vip netip.Prefix, routed bool) vips {
	if routed {
		v.routed = append(v.routed, vip)
	} else {
		v.others = append(v.others, vip)
	}
	return v
}

// without returns the VIPs without an address.
func (v vips) without(a netip.Addr) vips {
	is := func(p netip.Prefix) bool { return p.Addr() == a }
	return vips{slices.DeleteFunc(v.routed, is), slices.DeleteFunc(v.others, is)}
}

// anchor returns the anchor, or false if there is no VIP, given the addresses that the shard's router has: that one of
// them if it is still among those to choose from, or else the first one in its subnet, so that the next hop stays.
// ovn-northd computes everything anew for another anchor (ADR 23), and a tenant can take an old Service out of its
// shard and back again and again.
func (v vips) anchor(last []netip.Addr) (netip.Prefix, bool) {
	list := v.routed
	if len(list) == 0 {
		list = v.others
	}
	if len(list) == 0 {
		return netip.Prefix{}, false
	}
	i := slices.IndexFunc(list, func(p netip.Prefix) bool { return slices.Contains(last, p.Addr()) })
	if i < 0 {
		i = slices.IndexFunc(list, func(p netip.Prefix) bool { return slices.ContainsFunc(last, p.Masked().Contains) })
	}
	return list[max(i, 0)], true
}
