// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
)

// Host is an address of pods on the host network of their node.
type Host struct {
	Addr netip.Addr
	// Masquerade can replace the address of clients: the node sends traffic for it to OVN, and no host has it.
	Masquerade netip.Addr
}

// masqueradeNets contain the masquerade subnets of OVN-Kubernetes by default, in all of its releases. No pod, no client
// and no Service has one of their addresses.
func masqueradeNets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd69::/112")}
}

// HostsOf returns a function that returns the Hosts of a node whose masquerade addresses can be used. The cluster's
// router drops packets from and to a masquerade address that no node expects, and a kubelet can report the address of a
// pod or a client as that of its own node. An address that is in no default subnet must be that of more than half of
// the nodes that have one: OVN-Kubernetes has one configuration for all.
func HostsOf(nodes []*Node) func(*Node) []Host {
	count, total := map[netip.Addr]int{}, map[Family]int{}
	for _, n := range nodes {
		for _, h := range n.Hosts {
			count[h.Masquerade]++
			total[FamilyOf(h.Masquerade)]++
		}
	}
	refuses := func(h Host) bool {
		a := h.Masquerade
		return 2*count[a] <= total[FamilyOf(a)] &&
			!slices.ContainsFunc(masqueradeNets(), func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return func(n *Node) []Host {
		if !slices.ContainsFunc(n.Hosts, refuses) {
			return n.Hosts
		}
		return slices.DeleteFunc(slices.Clone(n.Hosts), refuses)
	}
}
