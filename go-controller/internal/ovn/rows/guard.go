// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// An alias leads to a backend past source ranges and NetworkPolicy, so a packet for one must
// come from the load balancer of a shard's router and from nowhere else:
//
//   - The switch of a domain drops what enters it for an alias, or from one, before it
//     reaches a shard's router. The router itself could not: behind its load balancer all
//     requests are for aliases.
//   - ovn_cluster_router takes either only from the join switch. Pods and nodes are behind its
//     other ports. On the join switch there are the shards' and nodes' routers, and
//     OVN-Kubernetes' gateway routers, which have routes to the pod networks and to the
//     outside, none for aliases.
//   - A node's router translates the ports that a Service serves, and discards the rest.

// internalPriority comes before the ACLs of Services on the same switch.
const internalPriority = admitPriority + 1

// discard is the nexthop of a route that drops (ovn-nb(5)).
const discard = "discard"

// internalACL keeps a domain's segment away from the addresses that our routers have among
// themselves: aliases, and the join switch. Like those of Services, it keeps no state.
func (g *Ground) internalACL(domain string) Row {
	var match []string
	for _, join := range g.facts.Join {
		f := world.FamilyOf(join.Addr())
		prefix := aliasesOf(f).prefix
		match = append(match, fmt.Sprintf("ip%d.dst == {%s, %s} || ip%d.src == %s", f, prefix, join.Masked(), f, prefix))
	}
	return owned(ACL, OwnerDomain, domain, map[string]any{
		"priority": internalPriority, "direction": "from-lport", "match": strings.Join(match, " || "), "action": "drop",
	}, "internal").in(switchName(domain))
}

// aliasRows are what the cluster router needs for all aliases of a family. Its routing must
// pass what comes from aliases on to its policies, which choose the shard; where to that
// route points means nothing.
func (g *Ground) aliasRows() []Row {
	if len(g.order) == 0 {
		return nil
	}
	var out []Row
	for _, join := range g.order[0].join {
		f := world.FamilyOf(join.Addr())
		prefix := aliasesOf(f).prefix.String()
		row := func(table string, columns map[string]any, parts ...string) {
			out = append(out, owned(table, OwnerAliases, f.String(), columns, parts...).in(ClusterRouter))
		}
		policy := func(priority int, match, action string, parts ...string) {
			row(Policy, map[string]any{"priority": priority, "match": match, "action": action, "nexthops": []string{}}, parts...)
		}
		source := "src-ip"
		row(StaticRoute, map[string]any{"ip_prefix": prefix, "nexthop": join.Addr().String(), "policy": &source})
		row(StaticRoute, map[string]any{"ip_prefix": prefix, "nexthop": discard, "policy": (*string)(nil)}, "unknown")
		// In two, for OVN cannot match what does not come by a port. What is allowed goes as it was routed.
		policy(guardPriority+1, fmt.Sprintf("inport == %q && ip%d.dst == %s", ClusterRouterPort, f, prefix), "allow", "join")
		policy(guardPriority, fmt.Sprintf("ip%d.dst == %s", f, prefix), "drop", "others")
		policy(passPriority, fmt.Sprintf("ip%d.src == %s", f, prefix), "drop", "unknown")
	}
	return out
}
