// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// aliases derives the aliases of one address family. An alias is the address that one shard uses for a backend. The
// shard's load balancers translate to the alias, and the router of the backend's node translates it to the pod's
// address. The node's connection tracking thus knows which shard a connection came through, and the source address of
// replies identifies that shard.
//
// An alias consists of a reserved prefix, the pod's offset in the pod networks, and the shard's ordinal:
//
//	10.244.1.3          through shard 0   240.1.3.0          4 + 20 + 8 bits
//	fd00:10:244:1::3    through shard 5   fd3e:5b1c:1::3:5   32 + 80 + 16 bits
//
// The alias of a node itself uses the offset of the network address of its pod subnet, which no pod has.
//
// Aliases occur only in packets between routers: no pod, node or segment ever sees one. 240.0.0.0/4 is reserved (RFC
// 1112) and not routed; the IPv6 prefix is a unique local prefix (RFC 4193). Never change the derivation, because
// that breaks connections.
type aliases struct {
	prefix  netip.Prefix
	ordinal int // number of bits
}

// maxOrdinal is the largest shard ordinal. It fits into an alias of either family.
const maxOrdinal = world.MaxOrdinals - 1

const _ = uint8(maxOrdinal) // does not compile if there are more than 8 bits

func aliasesOf(f world.Family) aliases {
	if f == world.IPv4 {
		return aliases{netip.PrefixFrom(world.ShardNet(f).Addr(), 4), 8}
	}
	return aliases{netip.PrefixFrom(world.ShardNet(f).Addr(), 32), 16}
}

// prefixOf returns the aliases of a subnet's addresses, as a prefix that covers all shards and whose address is the
// alias through shard 0. It returns false if no pod network contains the subnet, or if the pod networks are too large.
func (a aliases) prefixOf(nets []netip.Prefix, subnet netip.Prefix) (netip.Prefix, bool) {
	size := a.prefix.Addr().BitLen()
	room := size - a.prefix.Bits() - a.ordinal
	var start number
	for _, pods := range nets {
		if pods.Addr().BitLen() != size {
			continue
		}
		host := size - pods.Bits()
		// Networks are laid out in configuration order, each aligned to its size.
		start = start.plus(ones(host)).andNot(ones(host))
		if pods.Bits() <= subnet.Bits() && pods.Contains(subnet.Addr()) {
			at := start.plus(numberOf(subnet.Addr()).and(ones(host)))
			if at != at.and(ones(room)) {
				return netip.Prefix{}, false
			}
			addr := at.shl(a.ordinal).plus(numberOf(a.prefix.Addr())).addr(size)
			// A node may claim a subnet that has no room in the prefix, although its first addresses do.
			return netip.PrefixFrom(addr, subnet.Bits()-a.ordinal), subnet.Bits()-a.ordinal >= a.prefix.Bits()
		}
		if host > room {
			return netip.Prefix{}, false
		}
		start = start.plus(ones(host)).plus(number{low: 1})
	}
	return netip.Prefix{}, false
}

// alias returns the address that a shard uses for a pod, or false for an address outside the pod networks.
func (b *Builder) alias(ordinal int, pod netip.Addr) (netip.Addr, bool) {
	p, ok := aliasesOf(world.FamilyOf(pod)).prefixOf(b.cluster.ClusterSubnets, netip.PrefixFrom(pod, pod.BitLen()))
	if !ok {
		return netip.Addr{}, false
	}
	raw := p.Addr().AsSlice()
	raw[len(raw)-1] |= byte(ordinal) // at most maxOrdinal
	addr, _ := netip.AddrFromSlice(raw)
	return addr, true
}

// hostAlias returns the address that a shard uses for a node itself, or false if the node is not in the database.
func (b *Builder) hostAlias(ordinal int, name string, f world.Family) (netip.Addr, bool) {
	subnets := byFamily(b.podSubnets(name), f)
	if len(subnets) == 0 {
		return netip.Addr{}, false
	}
	return b.alias(ordinal, subnets[0].Addr())
}

// podSubnets returns the subnets of a node's pods. In a zone they are those that OVN-Kubernetes publishes, so that all
// zones derive the same alias; otherwise those in the database.
func (b *Builder) podSubnets(name string) []netip.Prefix {
	if b.zone != nil {
		i, found := slices.BinarySearchFunc(b.peers, name, func(n plan.Node, name string) int {
			return cmp.Compare(n.Name, name)
		})
		if !found {
			return nil
		}
		return b.peers[i].PodSubnets
	}
	if n, ok := b.nodes[name]; ok {
		return n.subnets
	}
	return nil
}

// aliasMatch returns a match for packets from any alias of a shard.
func aliasMatch(f world.Family, ordinal int) string {
	a := aliasesOf(f)
	value, bits := a.prefix.Addr().AsSlice(), make([]byte, a.prefix.Addr().BitLen()/8)
	value[len(value)-1] |= byte(ordinal)
	for i := range a.prefix.Bits() {
		bits[i/8] |= 0x80 >> (i % 8)
	}
	for i := range a.ordinal {
		bits[len(bits)-1-i/8] |= 1 << (i % 8)
	}
	v, _ := netip.AddrFromSlice(value)
	m, _ := netip.AddrFromSlice(bits)
	return fmt.Sprintf("ip%d.src == %s/%s", f, v, m)
}
