// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// On the bridge of its own gateway in shared mode, OVN-Kubernetes sends all packets for addresses and ports of Services
// to the external switch of the node, whatever their MAC address is. A shard therefore has a port there, an in-port,
// with the MAC address of its port on the segment. Requests for its addresses (ARP, neighbour solicitations) and
// replies use the domain's own port on the bridge.
//
// In a zone the in-port is a second port of the shard's router (inPortRows). If one database configures the cluster,
// the router is on every chassis, and a port of it on the external switch of one node would bring that switch to all
// of them: each bridge would then have a port for the switch of each gateway, and forward what its neighbours send.
// There the in-ports of a node belong to a router of their own, which is bound to the node's chassis and passes their
// packets on to the switch of the domain. They continue like packets from the segment.
//
//	segment - bridge - ext_<node> - router slbin-<domain>/<node> - switch slb-<domain> - shard router
//
// A frame for a shard reaches a node that is not its active gateway when a physical switch floods it. An ACL on the
// external switch drops it there. (OVN exempts neighbour discovery from ACLs: each gateway answers a solicitation for
// the link-local address of a shard's router, which no client uses.)

// inPortPriority is the priority of the ACL of an in-port. The external switches have no ACLs of OVN-Kubernetes.
const inPortPriority = internalPriority

// inRouter returns the name of the router of the in-ports of a node. Names of domains and nodes can contain "-".
func inRouter(domain, node string) string { return "slbin-" + domain + "/" + node }

// inPortNetwork returns the address of an in-port. It is never used, but a port must have one. It is unique on the
// external switch and among the in-ports of a router.
func (s *shard) inPortNetwork() string { return fmt.Sprintf("169.254.251.%d/32", s.ordinal) }

// inPort returns the name of the in-port of a shard's router, in a zone.
func inPort(id world.ShardID) string { return RouterName(id) + "-in" }

// hasInPort reports whether a shard's router has a port on the external switch of the zone's node.
func (b *Builder) hasInPort(s *shard) bool {
	return b.zone != nil && slices.ContainsFunc(s.Gateways, func(gw plan.Gateway) bool {
		return gw.Chassis == b.zone.Chassis && gw.SharedBridge
	})
}

// inRouters returns the rows of the in-ports, one slice per domain and gateway, if one database configures the
// cluster. A gateway that OVN-Kubernetes has not set up yet has none.
func (b *Builder) inRouters() [][]Row {
	if b.zone != nil {
		return nil
	}
	var out [][]Row
	for _, d := range b.domains {
		shards := map[plan.Gateway][]*shard{}
		var gateways []plan.Gateway
		for _, s := range b.shardList {
			for _, gw := range s.Gateways {
				if s.domain != d || !gw.SharedBridge || gw.Chassis == "" {
					continue
				}
				if shards[gw] == nil {
					gateways = append(gateways, gw)
				}
				shards[gw] = append(shards[gw], s)
			}
		}
		for _, gw := range gateways {
			if f := b.facts.Nodes[gw.Node]; len(f.Join) > 0 && len(f.External) > 0 {
				out = append(out, b.inRouterRows(d, gw, f, shards[gw]))
			}
		}
	}
	return out
}

// inRouterRows returns the router of the in-ports of a gateway, with the in-ports of the shards.
func (b *Builder) inRouterRows(d *plan.Domain, gw plan.Gateway, f NodeFacts, shards []*shard) []Row {
	router := inRouter(d.Name, gw.Node)
	port := router + "-out"
	row := func(table string, columns map[string]any) Row {
		return owned(table, OwnerDomain, d.Name, columns, "in", gw.Node)
	}
	// The router needs an address of each family. That of the node's gateway router is unique, and packets to it can't
	// come from the segment (segmentACL).
	var networks []string
	for _, join := range f.Join {
		networks = append(networks, netip.PrefixFrom(join.Addr(), join.Addr().BitLen()).String())
	}
	slices.Sort(networks)
	out := []Row{
		row(Router, protectedRouter(router, map[string]string{
			"chassis": gw.Chassis, "always_learn_from_arp_request": "false", "mcast_relay": "false",
			// The MAC addresses of shards must be known before the first packet, also when a gateway takes over.
			"dynamic_neigh_routers": "false",
		})),
		row(RouterPort, map[string]any{
			"name": port, "mac": world.HashMAC(b.cluster.ID + "|" + router), "networks": networks,
		}).withParent(router),
		row(SwitchPort, map[string]any{
			"name": "out-" + router, "type": "router", "addresses": []string{"router"},
			"options": map[string]string{"router-port": port}, "tag": (*int)(nil),
		}).withParent(switchName(d.Name)),
	}
	out = append(out, row(ACL, map[string]any{
		"priority": inPortPriority, "direction": "from-lport", "match": groupFrames, "action": "drop",
	}).withParent(ExternalSwitchPrefix+gw.Node))
	for _, s := range shards {
		out = append(out, b.gatewayInPortRows(s, gw.Node, router, port)...)
	}
	return out
}

// gatewayInPortRows returns the in-port of a shard on the external switch of a gateway. All its packets go to the
// shard's own address in the domain, by a routing table of the in-port.
func (b *Builder) gatewayInPortRows(s *shard, node, router, out string) []Row {
	name := router + "-" + strconv.Itoa(s.ID.Index)
	address := s.ID.SegmentMAC(b.cluster.ID)
	drop := fmt.Sprintf("eth.dst == %s && !is_chassis_resident(%q)", address, RedirectPort(s.ID))
	external := ExternalSwitchPrefix + node
	rows := []Row{
		s.row(RouterPort, map[string]any{
			"name": name, "mac": address, "networks": []string{s.inPortNetwork()},
			"options": map[string]string{"route_table": name},
		}, "in", node).withParent(router),
		s.row(SwitchPort, map[string]any{
			"name": "in-" + name, "type": "router", "addresses": []string{"router"},
			"options": map[string]string{"router-port": name}, "tag": (*int)(nil),
		}, "in", node).withParent(external),
		s.row(ACL, map[string]any{
			"priority": inPortPriority, "direction": "from-lport", "match": drop, "action": "drop",
		}, "in", node).withParent(external),
	}
	for _, anchor := range s.Anchors {
		rows = append(rows, s.row(StaticRoute, map[string]any{
			"ip_prefix": netip.PrefixFrom(anchor.Addr(), 0).Masked().String(), "nexthop": anchor.Addr().String(),
			"output_port": &out, "route_table": name,
		}, "in", node, world.FamilyOf(anchor.Addr()).String()).withParent(router))
	}
	return rows
}
