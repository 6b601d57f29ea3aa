// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A backend on its node's own network would reply through the node's default route. Therefore the node router hides
// its clients behind an address that the node routes back to OVN: the masquerade address that OVN-Kubernetes routes
// to its management port. That address is the same on all nodes. The node's own address at the other end of the
// connection identifies the node.

// defaultDropPriority is below the policies that select a next hop. Packets that match none of them are dropped.
const defaultDropPriority = policyPriority - 1

func (n *node) router() string { return "slbnode-" + n.Name } // no name of a shard's router starts like this

func (n *node) port() string { return n.router() + "-join" }

// row returns a row of a node.
func (n *node) row(table string, columns map[string]any, parts ...string) Row {
	return owned(table, OwnerNode, n.Name, columns, parts...).with(KeyNode, n.Name)
}

// options returns the options of a node's router.
func (n *node) options() map[string]string {
	options := map[string]string{
		"chassis":                       n.Chassis,
		"dynamic_neigh_routers":         "true",
		"always_learn_from_arp_request": "false",
		"mcast_relay":                   "false",
	}
	var hidden []string
	for _, h := range n.Hosts {
		hidden = append(hidden, h.Masquerade.String())
	}
	if len(hidden) > 0 {
		// This applies to clients of load balancers without skip_snat, which are those of the node itself.
		options["lb_force_snat_ip"] = strings.Join(hidden, " ")
	}
	return options
}

// balancer returns the load balancer that translates aliases to the addresses they stand for.
func (n *node) balancer(protocol world.Protocol, host bool, vips map[string]string) Row {
	proto := strings.ToLower(string(protocol))
	name, parts := n.router(), []string{proto}
	options := map[string]string{"neighbor_responder": "none"} // no client sends ARP requests for an alias
	if host {
		name, parts = name+"-host", []string{"host", proto}
	} else {
		options["skip_snat"] = "true" // pods see the real addresses of their clients
	}
	return n.row(LoadBalancer, map[string]any{
		"name": name + "-" + proto, "protocol": &proto, "vips": vips, "options": options,
		"selection_fields": oneBackend(),
	}, parts...).withParent(n.router())
}

// hostRows returns the rows that let a node be a backend itself: the load balancers for aliases of its own addresses,
// and the policies for the path through its management port and back. Addresses that are not backends of any Service
// have none.
func (b *Builder) hostRows(n *node, balancers []Row) []Row {
	out := balancers
	for _, h := range n.Hosts {
		f := world.FamilyOf(h.Addr)
		ports, _ := backendsOf(balancers, func(a netip.Addr) bool { return a == h.Addr })
		own, subnets := byFamily(n.join, f), byFamily(n.subnets, f)
		if len(ports) == 0 || len(own) == 0 || len(subnets) == 0 {
			continue
		}
		// Do not use is_chassis_resident: ovn-controller 23.03 can miss that a port has become resident, and then has
		// no flow for such a policy until it recomputes all flows.
		policy := func(way, port string, from, to netip.Addr, side string, hop netip.Addr) {
			// Open vSwitch looks up fragments without ports, the first one of a packet, too.
			match := fmt.Sprintf("inport == %q && ip%d.src == %s && ip%d.dst == %s && (%s || ip.is_frag)",
				port, f, from, f, to, portMatch(ports, side))
			out = append(out, n.row(Policy, map[string]any{
				"priority": policyPriority, "match": match, "action": "reroute", "nexthops": []string{hop.String()},
			}, way, h.Addr.String()).withParent(ClusterRouter))
		}
		policy("to", ClusterRouterPort, h.Masquerade, h.Addr, "dst", nth(subnets[0], managementHost))
		policy("from", PodPortPrefix+n.Name, h.Addr, h.Masquerade, "src", own[0].Addr())
	}
	return out
}

// clientRows returns the routes and policies of the cluster router for hidden clients. The routes only make routing
// pass packets from or to hidden clients on to the policies, which select the node; their next hop is irrelevant.
// Packets that match no such policy must not follow the routes and are dropped.
func (b *Builder) clientRows() []Row {
	hidden := map[netip.Addr]bool{}
	for _, n := range b.nodes {
		for _, h := range n.Hosts {
			hidden[h.Masquerade] = true
		}
	}
	var out []Row
	for _, a := range slices.SortedFunc(maps.Keys(hidden), netip.Addr.Compare) {
		f := world.FamilyOf(a)
		if len(b.shardList) == 0 || len(byFamily(b.shardList[0].join, f)) == 0 {
			continue
		}
		row := func(table string, columns map[string]any, parts ...string) Row {
			return owned(table, OwnerClients, a.String(), columns, parts...).withParent(ClusterRouter)
		}
		for _, policy := range []string{"src-ip", "dst-ip"} {
			out = append(out, row(StaticRoute, map[string]any{
				"ip_prefix": netip.PrefixFrom(a, a.BitLen()).String(), "policy": &policy,
				"nexthop": byFamily(b.shardList[0].join, f)[0].Addr().String(),
			}, policy))
		}
		out = append(out, row(Policy, map[string]any{
			"priority": defaultDropPriority, "match": fmt.Sprintf("ip%d.src == %s || ip%d.dst == %s", f, a, f, a),
			"action": "drop", "nexthops": []string{},
		}))
	}
	return out
}
