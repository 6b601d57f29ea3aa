// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
)

// PodSubnetsOf returns a function that returns the PodSubnets of a node without those that overlap with one of another
// node and have a length that fewer nodes have. OVN-Kubernetes gives nodes distinct subnets of one length, or of few. A
// kubelet can claim others in its Node: narrower ones would attract what is sent to the pods of other nodes.
func PodSubnetsOf(nodes []*Node) func(*Node) []netip.Prefix {
	type length struct {
		family Family
		bits   int
	}
	lengthOf := func(p netip.Prefix) length { return length{FamilyOf(p.Addr()), p.Bits()} }
	owners, count := map[netip.Prefix][]string{}, map[length]int{}
	for _, n := range nodes {
		counted := map[length]bool{}
		for _, p := range n.PodSubnets {
			owners[p] = append(owners[p], n.Name)
			if l := lengthOf(p); !counted[l] {
				counted[l] = true
				count[l]++
			}
		}
	}
	type claim struct {
		node   string
		subnet netip.Prefix
	}
	refused := map[claim]bool{}
	for _, n := range nodes {
		for _, p := range n.PodSubnets {
			for l, others := range count {
				wider, err := p.Addr().Prefix(l.bits)
				if err != nil || l.family != FamilyOf(p.Addr()) || l.bits >= p.Bits() {
					continue
				}
				for _, owner := range owners[wider] {
					switch own := count[lengthOf(p)]; {
					case owner == n.Name:
					case others > own:
						refused[claim{n.Name, p}] = true
					case others < own:
						refused[claim{owner, wider}] = true
					}
				}
			}
		}
	}
	return func(n *Node) []netip.Prefix {
		if len(refused) == 0 {
			return n.PodSubnets
		}
		return slices.DeleteFunc(slices.Clone(n.PodSubnets), func(p netip.Prefix) bool { return refused[claim{n.Name, p}] })
	}
}
