// SPDX-License-Identifier: Apache-2.0

package place

import (
	"net/netip"
	"slices"
)

// vips are the VIPs of one family of a shard, with the prefix lengths of their subnets, those of the oldest Services
// first. routed are those in subnets with a next hop. The first of these is the anchor: the shard's router has the next
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

// anchor returns the anchor, or false if there is no VIP.
func (v vips) anchor() (netip.Prefix, bool) {
	for _, list := range [][]netip.Prefix{v.routed, v.others} {
		if len(list) > 0 {
			return list[0], true
		}
	}
	return netip.Prefix{}, false
}
