// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"net/netip"
	"slices"
)

// Listed are the addresses in spec.externalIPs of Services, of any type, that do not have them. OVN-Kubernetes serves
// them there all the same: it creates load balancers for them on the routers of nodes, and flows on br-ex. Long lists
// are known as prefixes that contain more addresses (CoverListed).
type Listed map[netip.Prefix]struct{}

// Add adds the addresses in prefixes that CoverListed returned.
func (l *Listed) Add(list []netip.Prefix) {
	if *l == nil && len(list) > 0 {
		*l = make(Listed, len(list))
	}
	for _, p := range list {
		(*l)[p] = struct{}{}
	}
}

// Has reports whether an address may be listed: itself, or a prefix that contains it. It costs little to draw such an
// address last. Nothing else may depend on it: a tenant could exempt addresses of others with a few prefixes.
func (l Listed) Has(a netip.Addr) bool {
	if len(l) == 0 {
		return false
	}
	for level := range listedLevels {
		if _, found := l[coarsen(netip.PrefixFrom(a, a.BitLen()), level)]; found {
			return true
		}
	}
	return false
}

// HasExactly reports whether an address itself is known to be listed.
func (l Listed) HasExactly(a netip.Addr) bool {
	_, found := l[netip.PrefixFrom(a, a.BitLen())]
	return found
}

// maxListed is the maximum number of prefixes for the list of a Service.
const maxListed = 2500

// CoverListed returns at most maxListed prefixes, sorted, that contain those of a list. They are the same ones, or if
// these are too many, prefixes of 24, 16, 8 or 0 bits in IPv4, and of 96, 64, 32 or 0 in IPv6: a tenant can't hide an
// address behind others, and it costs little to take an address for a listed one.
func CoverListed(list []netip.Prefix) []netip.Prefix { return cover(list, maxListed) }

// cover returns at most so many prefixes, at least two, as CoverListed does.
func cover(list []netip.Prefix, most int) []netip.Prefix {
	for level := range listedLevels {
		all := make(map[netip.Prefix]struct{}, min(len(list), most+1))
		for _, p := range list {
			if all[coarsen(p, level)] = struct{}{}; len(all) > most {
				break
			}
		}
		if len(all) <= most {
			return slices.SortedFunc(maps.Keys(all), netip.Prefix.Compare)
		}
	}
	return nil // not reached: the last level has a prefix for each family
}

// listedLevels is the number of lengths that prefixes in Listed have, in each family.
const listedLevels = 5

// coarsen returns the prefix of a level that contains a prefix: of the first one the prefix itself.
func coarsen(p netip.Prefix, level int) netip.Prefix {
	bits := p.Addr().BitLen()
	return netip.PrefixFrom(p.Addr(), min(p.Bits(), bits*(listedLevels-1-level)/(listedLevels-1))).Masked()
}
