// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// An alias bypasses source ranges and NetworkPolicy. A packet to an alias must therefore come from the load balancer
// of a shard's router and from nowhere else:
//
//   - The switch of a domain, and the external switch with in-ports, drop packets from or to an alias before they reach
//     a shard's router. The router itself can't do so: after its load balancer, all requests are for aliases.
//   - ovn_cluster_router accepts such packets only from the join switch. Pods and nodes are behind its other ports.
//     The join switch connects the routers of shards and nodes, and the gateway routers of OVN-Kubernetes, which have
//     routes to the pod networks and to the outside but none for aliases.
//   - A node's router translates the ports that a Service serves, and discards all other packets.

// internalPriority precedes the ACLs of Services on the same switch.
const internalPriority = allowPriority + 1

// discard is the next hop of a route that drops packets (ovn-nb(5)).
const discard = "discard"

// groupFrames matches frames to a group of hosts with a packet to one. A router accepts such a frame on each of its
// ports, whichever chassis is the gateway, so that each shard would forward a copy on each gateway. Values of ip6.dst
// that begin with 255 are multicast.
const groupFrames = "(eth.mcast && (ip4.dst == {0.0.0.0/1, 128.0.0.0/2, 192.0.0.0/3} || ip6.dst[120..127] != 255))"

// segmentACL isolates a domain's segment from the addresses inside the cluster: aliases, those of pods, and those of
// routers. It also keeps BFD with next hops from our routers. Like the ACLs of Services, it is stateless.
func (b *Builder) segmentACL(d *plan.Domain) Row {
	return owned(ACL, OwnerDomain, d.Name, map[string]any{
		"priority": internalPriority, "direction": "from-lport", "match": b.unwantedPackets(d), "action": "drop",
	}, "internal").withParent(switchName(d.Name))
}

// unwantedPackets matches packets from or to the addresses that our routers use among themselves, from the networks
// that contain no clients of a VIP, BFD packets (RFC 5881 section 4) from the next hops of a domain, and groupFrames.
//
// A host that sends from the address of a pod would bypass NetworkPolicies that admit this pod. OVN-Kubernetes also
// admits each node's management port, an address among those of pods, to all pods of the node. Pods themselves reach
// VIPs by load balancers on the switch of their node, and replies to these networks never pass a shard (nodePolicies).
// ICMP is not dropped: a router far away, with an address that the cluster uses as well, may report the path MTU.
//
// A shard's router has a BFD session with its next hop, which only makes it send packets: the next hop needs no BFD.
// ovn-controller believes who sends from the address of the next hop, from anywhere, and each change of the session's
// state makes ovn-northd compute everything again (en_bfd in northd/inc-proc-northd.c, 24.09 and later). What the
// router itself sends to the next hop does not match.
func (b *Builder) unwantedPackets(d *plan.Domain) string {
	match := []string{groupFrames}
	const balanced = "6, 17, 132, 59" // the protocols of Services, and what fragmentsTo describes
	for _, join := range b.facts.Join {
		f := world.FamilyOf(join.Addr())
		prefix := aliasesOf(f).prefix
		match = append(match, fmt.Sprintf("ip%d.dst == {%s, %s} || ip%d.src == %s || (ip%d.src == {%s} && ip.proto == {%s})",
			f, prefix, join.Masked(), f, prefix, f, strings.Join(texts(b.internalSubnets(f)), ", "), balanced))
	}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		var hops []string
		for _, subnet := range d.Subnets {
			if gw := subnet.Gateway; gw.IsValid() && world.FamilyOf(gw) == f {
				hops = append(hops, gw.String())
			}
		}
		if len(hops) > 0 {
			match = append(match, fmt.Sprintf("(ip%d.src == {%s} && udp.dst == 3784)", f, strings.Join(hops, ", ")))
		}
	}
	return strings.Join(match, " || ")
}

// aliasRows returns the rows of the cluster router for all aliases, per family. The src-ip route only makes routing
// pass packets from aliases on to the policies, which select the shard; its next hop is irrelevant.
func (b *Builder) aliasRows() []Row {
	if len(b.shardList) == 0 {
		return nil
	}
	var out []Row
	for _, join := range b.shardList[0].join {
		f := world.FamilyOf(join.Addr())
		prefix := aliasesOf(f).prefix.String()
		row := func(table string, columns map[string]any, parts ...string) {
			out = append(out, owned(table, OwnerAliases, f.String(), columns, parts...).withParent(ClusterRouter))
		}
		policy := func(priority int, match, action string, parts ...string) {
			row(Policy, map[string]any{"priority": priority, "match": match, "action": action, "nexthops": []string{}}, parts...)
		}
		source := "src-ip"
		row(StaticRoute, map[string]any{"ip_prefix": prefix, "nexthop": join.Addr().String(), "policy": &source})
		row(StaticRoute, map[string]any{"ip_prefix": prefix, "nexthop": discard, "policy": (*string)(nil)}, "unknown")
		// Use two policies, because OVN can't match packets that do not arrive at a given port. Allowed packets
		// follow the route.
		policy(aliasDropPriority+1, fmt.Sprintf("inport == %q && ip%d.dst == %s", ClusterRouterPort, f, prefix), "allow",
			"join")
		if b.zone != nil {
			// Requests to backends of this zone come from gateways of other zones.
			policy(aliasDropPriority+1, fmt.Sprintf("inport == %q && ip%d.dst == %s", TransitPortPrefix+b.zone.Node, f, prefix),
				"allow", "transit")
		}
		policy(aliasDropPriority, fmt.Sprintf("ip%d.dst == %s", f, prefix), "drop", "others")
		policy(defaultDropPriority, fmt.Sprintf("ip%d.src == %s", f, prefix), "drop", "unknown")
	}
	return out
}
