// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// EgressProblem is why replies to connections that pods open from an address do not reach the host that translates
// them.
type EgressProblem uint8

// The problems. The zero value is none.
const (
	// EgressNodeUnknown means that there is no Node of that name.
	EgressNodeUnknown EgressProblem = iota + 1
	// EgressOffSegment means that no address of the node's gateway is in the subnet of the L2Domain that contains the
	// address.
	EgressOffSegment
	// EgressNoMAC means that the MAC address of the node's gateway is unknown, or that of a shard of any
	// L2Domain.
	EgressNoMAC
	// EgressOtherSubnet means that the address is not in the subnet of the address of its shard's router.
	EgressOtherSubnet
)

// Egress is where replies to connections go that pods open from an address (world.Snapshot.EgressHosts).
type Egress struct {
	// Service is the oldest one with that address and a host. Services that share it have to have the same host.
	Service world.Key
	Node    string
	// MAC is the address of the host on the segment, empty if there is a Problem.
	MAC     string
	Problem EgressProblem
}

// computeEgress computes the hosts that get the replies. They are the same for all Services at an address.
func (d *Decision) computeEgress() {
	d.Egress = map[netip.Addr]Egress{}
	if len(d.World.EgressHosts) == 0 || d.World.Cluster.OpenShiftSDN {
		return
	}
	nodes, shards := map[string]*world.Node{}, d.shardMACs()
	for _, n := range d.World.Nodes {
		nodes[n.Name] = n
	}
	for _, s := range d.Allocation.InOrder() {
		host := d.World.EgressHosts[s.Key]
		if host == "" {
			continue
		}
		for _, v := range d.Placements.VIPs(s.Key) {
			if _, taken := d.Egress[v.Addr]; taken {
				continue
			}
			e := Egress{Service: s.Key, Node: host}
			e.MAC, e.Problem = d.nodeMAC(v, nodes[host], shards)
			d.Egress[v.Addr] = e
		}
	}
}

// nodeMAC returns the MAC address of a node on the segment of an address. What the node says of itself decides only
// where packets to this address go that are for no port of a Service. The host has to be in the address' own subnet:
// any other one sends those that it forwards to a router, from whose MAC address nothing is dropped, and they
// circulate.
func (d *Decision) nodeMAC(v plan.VIP, n *world.Node, shards map[string]bool) (mac string, problem EgressProblem) {
	i := slices.IndexFunc(d.Topology.Domains, func(o plan.Domain) bool { return o.Name == v.Shard.Domain })
	if n == nil || i < 0 {
		return "", EgressNodeUnknown
	}
	domain := &d.Topology.Domains[i]
	onSegment := slices.ContainsFunc(domain.Subnets, func(s world.Subnet) bool {
		return s.Prefix.Contains(v.Addr) && slices.ContainsFunc(n.External, s.Prefix.Contains)
	})
	routed := slices.ContainsFunc(domain.Shards, func(s plan.Shard) bool {
		return s.ID == v.Shard && slices.ContainsFunc(s.Anchors, func(anchor netip.Prefix) bool {
			return anchor.Masked().Contains(v.Addr)
		})
	})
	switch {
	case !routed:
		return "", EgressOtherSubnet
	case !onSegment:
		return "", EgressOffSegment
	case n.GatewayMAC == "" || shards[n.GatewayMAC]:
		return "", EgressNoMAC
	}
	return n.GatewayMAC, 0
}

// shardMACs returns the MAC addresses of the shards of all L2Domains: those of two can be on one segment.
func (d *Decision) shardMACs() map[string]bool {
	macs := map[string]bool{}
	for _, domain := range d.Topology.Domains {
		for _, s := range domain.Shards {
			macs[s.ID.SegmentMAC(d.World.Cluster.ID)] = true
		}
	}
	return macs
}

// vips returns the addresses of a Service that have a shard.
func (d *Decision) vips(key world.Key) []plan.VIP {
	vips := d.Placements.VIPs(key)
	for i := range vips {
		vips[i].EgressMAC = d.Egress[vips[i].Addr].MAC
	}
	return vips
}

// decidesEgress reports whether a change of a Service, or of the address of a shard's router, can change where replies
// to connections of pods go, also those of other Services.
func (d *Decision) decidesEgress(key world.Key, anchored bool) bool {
	return d.World.EgressHosts[key] != "" || anchored && len(d.Egress) > 0
}
