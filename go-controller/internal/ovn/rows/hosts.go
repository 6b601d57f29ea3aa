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

// A backend on its node's own network would answer by the node's default route. So the node
// router hides its clients behind an address that the node sends back to OVN: the
// masquerade address that OVN-Kubernetes routes to its management port. It is the same on
// all nodes; which one is meant says the node's own address at the other end.

// passPriority comes after the policies that know where to: what they leave is nobody's.
const passPriority = policyPriority - 1

func (n *node) router() string { return "slbnode-" + n.Name } // no shard's router begins so

func (n *node) port() string { return n.router() + "-join" }

// row makes a row of a node.
func (n *node) row(table string, columns map[string]any, parts ...string) Row {
	return owned(table, OwnerNode, n.Name, columns, parts...).with(KeyNode, n.Name)
}

// options are those of a node's router.
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
		// For the clients of load balancers without skip_snat, that is of the node itself.
		options["lb_force_snat_ip"] = strings.Join(hidden, " ")
	}
	return options
}

// balancer turns aliases into what they are of. Each has one backend, so it means nothing
// what is hashed; but without fields each new connection goes through the datapath once
// more, and the userspace one drops what it has to look at for the eighth time
// (MAX_RECIRC_DEPTH). Where a gateway is a backend itself, that was one time too many.
func (n *node) balancer(protocol world.Protocol, host bool, vips map[string]string) Row {
	proto := strings.ToLower(string(protocol))
	name, parts := n.router(), []string{proto}
	options := map[string]string{"neighbor_responder": "none"} // no client asks for an alias by ARP
	if host {
		name, parts = name+"-host", []string{"host", proto}
	} else {
		options["skip_snat"] = "true" // pods see their clients' own addresses
	}
	return n.row(LoadBalancer, map[string]any{
		"name": name + "-" + proto, "protocol": &proto, "vips": vips, "options": options,
		"selection_fields": []string{"ip_dst"},
	}, parts...).in(n.router())
}

// hostRows let a node be a backend itself: the load balancers for aliases of its own addresses, and
// the way there by its management port, and back. None for addresses that no Service has as
// a backend.
func (g *Ground) hostRows(n *node, balancers []Row) []Row {
	out := balancers
	for _, h := range n.Hosts {
		f := world.FamilyOf(h.Addr)
		ports := served(balancers, func(a netip.Addr) bool { return a == h.Addr })
		own, subnets := byFamily(n.join, f), byFamily(n.subnets, f)
		if len(ports) == 0 || len(own) == 0 || len(subnets) == 0 {
			continue
		}
		// Without is_chassis_resident: ovn-controller 23.03 can miss that a port has become so, and
		// then has no flow for such a policy until it computes all of them again.
		policy := func(way, port string, from, to netip.Addr, side string, hop netip.Addr) {
			// Of a datagram in fragments only the first has ports.
			match := fmt.Sprintf("inport == %q && ip%d.src == %s && ip%d.dst == %s && (%s || ip.later_frag)",
				port, f, from, f, to, anyOf(ports, side))
			out = append(out, n.row(Policy, map[string]any{
				"priority": policyPriority, "match": match, "action": "reroute", "nexthops": []string{hop.String()},
			}, way, h.Addr.String()).in(ClusterRouter))
		}
		policy("to", ClusterRouterPort, h.Masquerade, h.Addr, "dst", nth(subnets[0], managementHost))
		policy("from", PodPortPrefix+n.Name, h.Addr, h.Masquerade, "src", own[0].Addr())
	}
	return out
}

// clientRows let the cluster router's routing pass what is from or to hidden clients on to
// its policies, which know the node; where to the routes point means nothing. What no
// policy takes must not follow them.
func (g *Ground) clientRows() []Row {
	hidden := map[netip.Addr]bool{}
	for _, n := range g.nodes {
		for _, h := range n.Hosts {
			hidden[h.Masquerade] = true
		}
	}
	var out []Row
	for _, a := range slices.SortedFunc(maps.Keys(hidden), netip.Addr.Compare) {
		f := world.FamilyOf(a)
		if len(g.order) == 0 || len(byFamily(g.order[0].join, f)) == 0 {
			continue
		}
		row := func(table string, columns map[string]any, parts ...string) Row {
			return owned(table, OwnerClients, a.String(), columns, parts...).in(ClusterRouter)
		}
		for _, policy := range []string{"src-ip", "dst-ip"} {
			out = append(out, row(StaticRoute, map[string]any{
				"ip_prefix": netip.PrefixFrom(a, a.BitLen()).String(), "policy": &policy,
				"nexthop": byFamily(g.order[0].join, f)[0].Addr().String(),
			}, policy))
		}
		out = append(out, row(Policy, map[string]any{
			"priority": passPriority, "match": fmt.Sprintf("ip%d.src == %s || ip%d.dst == %s", f, a, f, a),
			"action": "drop", "nexthops": []string{},
		}))
	}
	return out
}
