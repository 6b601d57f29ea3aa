// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
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

// HostsOf returns a function that returns the Hosts of a node that can be used.
//
// A masquerade address must be in a default subnet, or that of more than half of the nodes that have one:
// OVN-Kubernetes has one configuration for all. The cluster's router drops packets from and to a masquerade address
// that no node expects, and a kubelet can report the address of a pod or a client as that of its own node.
//
// An address that several nodes without a zone of their own report is that of the first of them (Node.Precedes): their
// database can send what is for it to one node only. With interconnect each zone has rows for its own node alone, so
// that the EndpointSlices decide between nodes, and no older node takes the address of a younger one.
func HostsOf(nodes []*Node) func(*Node) []Host {
	count, total := map[netip.Addr]int{}, map[Family]int{}
	for _, n := range nodes {
		for _, h := range n.Hosts {
			count[h.Masquerade]++
			total[FamilyOf(h.Masquerade)]++
		}
	}
	isMasquerade := func(a netip.Addr) bool {
		return 2*count[a] > total[FamilyOf(a)] ||
			slices.ContainsFunc(masqueradeNets(), func(p netip.Prefix) bool { return p.Contains(a) })
	}
	owners := map[netip.Addr]*Node{}
	for _, n := range nodes {
		if n.Chassis == "" || n.HasOwnZone() {
			continue
		}
		for _, h := range n.Hosts {
			if first := owners[h.Addr]; isMasquerade(h.Masquerade) && (first == nil || n.Precedes(first)) {
				owners[h.Addr] = n
			}
		}
	}
	return func(n *Node) []Host {
		refuses := func(h Host) bool {
			owner := owners[h.Addr]
			return !isMasquerade(h.Masquerade) || owner != nil && owner.Name != n.Name && !n.HasOwnZone()
		}
		if !slices.ContainsFunc(n.Hosts, refuses) {
			return n.Hosts
		}
		return slices.DeleteFunc(slices.Clone(n.Hosts), refuses)
	}
}

// Precedes reports whether n comes before o if both report one address as their own: the older one does, which a
// kubelet cannot change, but a node that is being deleted or whose kubelet is silent comes after all others. Its
// machine may have joined again under another name.
func (n *Node) Precedes(o *Node) bool {
	if leaves, other := n.Deleting || n.Unreachable, o.Deleting || o.Unreachable; leaves != other {
		return other
	}
	return cmp.Or(n.Created.Compare(o.Created), strings.Compare(n.Name, o.Name)) < 0
}

// ContestedHost is an address that several nodes report as their own, in the order of Node.Precedes.
type ContestedHost struct {
	Addr  netip.Addr
	Nodes []*Node
}

// ContestedHosts returns the addresses of Hosts that several nodes with a chassis report, sorted.
func ContestedHosts(nodes []*Node) []ContestedHost {
	claims := map[netip.Addr][]*Node{}
	for _, n := range nodes {
		for _, h := range n.Hosts {
			if n.Chassis != "" {
				claims[h.Addr] = append(claims[h.Addr], n)
			}
		}
	}
	var out []ContestedHost
	for _, a := range slices.SortedFunc(maps.Keys(claims), netip.Addr.Compare) {
		if by := claims[a]; len(by) > 1 {
			slices.SortFunc(by, func(n, o *Node) int {
				if n.Precedes(o) {
					return -1
				}
				return 1
			})
			out = append(out, ContestedHost{a, by})
		}
	}
	return out
}
