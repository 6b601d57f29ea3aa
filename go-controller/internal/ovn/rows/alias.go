// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// An alias is the address under which one shard knows a backend. The shard's load
// balancers send to it, and the backend's node makes it the pod's address again; so the
// node's connection tracking knows which connections came through which shard, and the
// source of their replies says it.
//
// An alias is a prefix of ours, the pod's place in the pod networks, and the shard's
// ordinal:
//
//	10.244.1.3          through shard 0   240.1.3.0          4 + 20 + 8 bits
//	fd00:10:244:1::3    through shard 5   fd3e:5b1c:1::3:5   32 + 80 + 16 bits
//
// A node itself has the place of its subnet's own address, which no pod has.
//
// It is in the headers of packets between routers only: no pod, no node and no segment
// ever sees one. 240.0.0.0/4 is reserved (RFC 1112) and routed nowhere; the other is a
// unique local prefix (RFC 4193). Never change the derivation: connections break.
type aliases struct {
	prefix  netip.Prefix
	ordinal int // bits of it
}

// maxOrdinal is the largest ordinal of a shard that fits into an alias of either family.
const maxOrdinal = 1<<8 - 1

func aliasesOf(f world.Family) aliases {
	if f == world.IPv4 {
		return aliases{netip.PrefixFrom(netip.AddrFrom4([4]byte{240}), 4), 8}
	}
	return aliases{netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x3e, 0x5b, 0x1c}), 32), 16}
}

// of returns the aliases through shard 0 of the addresses of a subnet of the pod
// networks, as a prefix that holds those through all shards; false if it is in none of
// them, or they are too large.
func (a aliases) of(nets []netip.Prefix, subnet netip.Prefix) (netip.Prefix, bool) {
	size := a.prefix.Addr().BitLen()
	room := size - a.prefix.Bits() - a.ordinal
	var start number
	for _, pods := range nets {
		if pods.Addr().BitLen() != size {
			continue
		}
		host := size - pods.Bits()
		// Networks follow each other in the order in which they are configured, each on a multiple of its size.
		start = start.plus(ones(host)).without(ones(host))
		if pods.Bits() <= subnet.Bits() && pods.Contains(subnet.Addr()) {
			at := start.plus(numberOf(subnet.Addr()).and(ones(host)))
			if at != at.and(ones(room)) {
				return netip.Prefix{}, false
			}
			addr := at.left(a.ordinal).plus(numberOf(a.prefix.Addr())).addr(size)
			return netip.PrefixFrom(addr, subnet.Bits()-a.ordinal), true
		}
		if host > room {
			return netip.Prefix{}, false
		}
		start = start.plus(ones(host)).plus(number{low: 1})
	}
	return netip.Prefix{}, false
}

// alias is the address under which a shard knows a pod; false for an address outside the
// pod networks.
func (g *Ground) alias(ordinal int, pod netip.Addr) (netip.Addr, bool) {
	p, ok := aliasesOf(world.FamilyOf(pod)).of(g.cluster.PodNets, netip.PrefixFrom(pod, pod.BitLen()))
	if !ok {
		return netip.Addr{}, false
	}
	raw := p.Addr().AsSlice()
	raw[len(raw)-1] |= byte(ordinal) // at most maxOrdinal
	addr, _ := netip.AddrFromSlice(raw)
	return addr, true
}

// hostAlias is the address under which a shard knows a node itself; false if the database
// does not have the node.
func (g *Ground) hostAlias(ordinal int, name string, f world.Family) (netip.Addr, bool) {
	n, ok := g.nodes[name]
	if !ok {
		return netip.Addr{}, false
	}
	subnets := byFamily(n.subnets, f)
	if len(subnets) == 0 {
		return netip.Addr{}, false
	}
	return g.alias(ordinal, subnets[0].Addr())
}

// through matches what comes from any alias of a shard.
func through(f world.Family, ordinal int) string {
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
