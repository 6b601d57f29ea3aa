// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
)

// fewAddrs is the length up to which a list is searched faster than a set.
const fewAddrs = 8

// AddrSet returns a function that reports whether a list contains an address. A Service may list tens of thousands of
// addresses, and a search in the list for each of them would compare all with all.
func AddrSet(list []netip.Addr) func(netip.Addr) bool {
	if len(list) <= fewAddrs {
		return func(a netip.Addr) bool { return slices.Contains(list, a) }
	}
	set := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		set[a] = struct{}{}
	}
	return func(a netip.Addr) bool {
		_, found := set[a]
		return found
	}
}
