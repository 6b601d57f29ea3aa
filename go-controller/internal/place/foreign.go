// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// ForeignSubnets describes the subnets of a domain that look like those of another network, by family, such as the ones
// of an example manifest: the domain is on the segment of the nodes themselves, and no subnet of the family contains an
// address of a node. They may be right, as a segment can have several subnets, so no condition reports them. On other
// segments, nodes need no address. A next hop that is not the nodes' own is described, too.
func ForeignSubnets(d *world.Domain, w *world.Snapshot) []string {
	var foreign []string
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		if text := ForeignSubnetsOf(d, w, f); text != "" {
			foreign = append(foreign, text)
		}
	}
	return foreign
}

// ForeignSubnetsOf is ForeignSubnets for one family. It returns an empty string if there is nothing to say.
func ForeignSubnetsOf(d *world.Domain, w *world.Snapshot, f world.Family) string {
	if d.VLAN != 0 || w.Cluster.OpenShiftSDN || len(d.Problems) > 0 {
		return ""
	}
	var subnets, own, others []string
	known := false
	for _, s := range d.Subnets {
		if world.FamilyOf(s.Prefix.Addr()) == f {
			subnets = append(subnets, s.Prefix.String())
		}
	}
	for _, n := range w.Nodes {
		onSegment := d.PhysicalNetwork == world.GatewayNetwork ||
			n.GatewayBridge != "" && w.Bridges[n.Chassis][d.PhysicalNetwork] == n.GatewayBridge
		if !onSegment || !slices.Contains(d.Nodes, n.Name) {
			continue
		}
		if slices.ContainsFunc(n.Addrs, func(a netip.Addr) bool { return world.FamilyOf(a) == f && inSubnet(d, a) }) {
			return otherNextHopText(d, n, f)
		}
		own, known = append(own, ownNetworks(n, f)...), known || len(n.External) > 0
		for network := range w.Bridges[n.Chassis] {
			if network != d.PhysicalNetwork {
				others = append(others, network)
			}
		}
	}
	switch {
	case len(subnets) == 0 || !known:
		return ""
	case len(own) == 0:
		return fmt.Sprintf("spec.subnets: %s, although no node has an %s address on its own network, which is %s",
			strings.Join(subnets, ", "), f, d.PhysicalNetwork)
	}
	slices.Sort(own)
	text := fmt.Sprintf("spec.subnets: no %s address of a node is in %s, although %s is the nodes' own network (%s)", f,
		strings.Join(subnets, ", "), d.PhysicalNetwork, world.Some(slices.Compact(own), maxNamed))
	if slices.Sort(others); len(others) > 0 {
		text += "; is another spec.physicalNetwork meant? Nodes also have " + world.Some(slices.Compact(others), maxNamed)
	}
	return text
}

// otherNextHopText describes a next hop of a domain that is not that of a node's own default route in the same subnet.
// Nothing has checked that it is a router: without one, clients in other subnets get no replies.
func otherNextHopText(d *world.Domain, n *world.Node, f world.Family) string {
	for _, s := range d.Subnets {
		hops := slices.DeleteFunc(slices.Clone(n.NextHops), func(a netip.Addr) bool { return !s.Prefix.Contains(a) })
		if s.Gateway.IsValid() && world.FamilyOf(s.Gateway) == f && len(hops) > 0 && !slices.Contains(hops, s.Gateway) {
			return fmt.Sprintf("spec.subnets[].gateway: %s is not the next hop that node %s has in %s, which is %s: is it a "+
				"router? Without one, clients in other subnets get no replies", s.Gateway, n.Name, s.Prefix, hops[0])
		}
	}
	return ""
}

func inSubnet(d *world.Domain, a netip.Addr) bool {
	return slices.ContainsFunc(d.Subnets, func(s world.Subnet) bool { return s.Prefix.Contains(a) })
}

// ownNetworks returns the networks of a family in which a node has its own addresses, or such an address if the length
// of the network's prefix is not known.
func ownNetworks(n *world.Node, f world.Family) []string {
	var networks []string
	for _, a := range n.External {
		if world.FamilyOf(a) != f {
			continue
		}
		at := slices.IndexFunc(n.Links, func(link netip.Prefix) bool { return link.Addr() == a })
		if at < 0 {
			networks = append(networks, a.String())
			continue
		}
		networks = append(networks, n.Links[at].Masked().String())
	}
	return networks
}
