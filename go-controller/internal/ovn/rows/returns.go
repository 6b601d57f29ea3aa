// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// policyPriority is in a range that OVN-Kubernetes leaves free (502-1001).
	policyPriority = 700
	// ownPriority comes before OVN-Kubernetes' policies that send to a node what is for
	// its own addresses (1004).
	ownPriority = 1010
	// managementHost is the number of the node's own port on its pods' subnet.
	managementHost = 2
)

// nodeJoinGap is how many addresses below the top of a join subnet the node routers'
// begin: above are those of shards.
const nodeJoinGap = maxOrdinal + 1

// Behind is a backend behind a shard: a pod, or a node itself.
type Behind struct {
	Shard world.ShardID
	Addr  netip.Addr
	Host  bool
}

// Port is a port that backends listen on.
type Port struct {
	Protocol world.Protocol
	Number   uint16
}

func (p Port) String() string { return string(p.Protocol) + "/" + strconv.Itoa(int(p.Number)) }

// ParsePorts reads external_ids:slb.k8s.ovn.org/ports: TCP/8080,UDP/53.
func ParsePorts(text string) []Port {
	var ports []Port
	for field := range strings.SplitSeq(text, ",") {
		protocol, number, _ := strings.Cut(field, "/")
		if n, err := strconv.ParseUint(number, 10, 16); err == nil {
			ports = append(ports, Port{world.Protocol(protocol), uint16(n)})
		}
	}
	return ports
}

// Returns calls use for each backend that a Service has, with its node, the shard that it
// is behind and the port that it listens on; a backend can come more than once.
func Returns(p *plan.Service, use func(node string, b Behind, port Port)) {
	for _, l := range p.Listeners {
		at := slices.IndexFunc(p.VIPs, func(v plan.VIP) bool { return v.Addr == l.VIP })
		if at < 0 {
			continue
		}
		for _, b := range l.Backends {
			use(b.Node, Behind{p.VIPs[at].Shard, b.Addr.Addr(), b.Host}, Port{l.Protocol, b.Addr.Port()})
		}
	}
}

// node is a node that can have a router of ours.
type node struct {
	plan.Node
	subnets []netip.Prefix
	own     []netip.Prefix // its addresses outside
	// join are the addresses of our router on the join switch.
	join []netip.Prefix
}

// layNodes gives the nodes that OVN-Kubernetes has made their join addresses. They mirror
// those of its own gateway routers, which it counts up: both never change while the node
// exists, and need no memory.
func (g *Ground) layNodes(nodes []plan.Node) {
	for _, n := range nodes {
		f, ok := g.facts.Nodes[n.Name]
		if !ok {
			continue
		}
		out := &node{Node: n, subnets: f.Subnets, own: f.External}
		for _, gateway := range f.Join {
			if a := mirror(gateway, nodeJoinGap); gateway.Addr().Less(a) && !g.facts.Taken[a] {
				out.join = append(out.join, netip.PrefixFrom(a, gateway.Bits()))
			}
		}
		if len(out.join) > 0 {
			g.nodes[n.Name] = out
		}
	}
}

// mirror counts from the top of an address's subnet, and a gap further, what the address
// has from the bottom.
func mirror(p netip.Prefix, gap int) netip.Addr {
	low, top := p.Addr().AsSlice(), netipx.PrefixLastIP(p.Masked()).AsSlice()
	base := p.Masked().Addr().AsSlice()
	borrow := gap
	for i := len(top) - 1; i >= 0; i-- {
		d := int(top[i]) - int(low[i]-base[i]) - borrow&0xff
		borrow >>= 8
		if d < 0 {
			d += 256
			borrow++
		}
		top[i] = byte(d)
	}
	a, _ := netip.AddrFromSlice(top)
	return a
}

// NodeRows are the rows of a node that has backends: its router, which knows which
// connections came through which shard, and what leads to it. None if the database does
// not have the node.
//
// The router is a gateway router, bound to the node's own chassis, so that what it knows
// does not depend on which gateway carries a shard. It turns aliases into pods'
// addresses, and the source of their replies back. What left a pod from a port that
// backends listen on passes it, and goes back to the cluster router in any case: as a
// reply from an alias, which goes on to the shard's router, or unchanged, to go on as if
// we were not there.
func (g *Ground) NodeRows(name string, behind []Behind, ports []Port) []Row {
	n, ok := g.nodes[name]
	if !ok {
		return nil
	}
	row, router, port := n.row, n.router(), n.port()
	out := []Row{
		row(Router, map[string]any{"name": router, "options": n.options()}),
		row(RouterPort, map[string]any{
			"name": port, "mac": hashMAC(g.cluster.ID + "|" + router), "networks": texts(n.join),
			"ha_chassis_group": (*string)(nil),
		}).in(router),
		row(SwitchPort, map[string]any{
			"name": "join-" + router, "type": "router", "addresses": []string{"router"},
			"options": map[string]string{"router-port": port}, "tag": (*int)(nil),
		}).in(JoinSwitch),
		// Pods see their clients' own addresses.
		n.balancer(router, g.aliasesOf(n, behind), map[string]string{"skip_snat": "true"}),
	}
	out = append(out, g.hostRows(n, behind)...)
	for _, join := range g.facts.Join {
		f := world.FamilyOf(join.Addr())
		own := byFamily(n.join, f)
		if len(own) == 0 {
			continue
		}
		out = append(out, row(StaticRoute, map[string]any{
			"ip_prefix": netip.PrefixFrom(join.Addr(), 0).Masked().String(), "nexthop": join.Addr().String(),
		}, "back", f.String()).in(router))
		for _, subnet := range byFamily(n.subnets, f) {
			if p, ok := aliasesOf(f).of(g.cluster.PodNets, subnet); ok {
				out = append(out, row(StaticRoute, map[string]any{
					"ip_prefix": p.String(), "nexthop": own[0].Addr().String(),
				}, "aliases", subnet.String()).in(ClusterRouter))
			}
		}
		if len(ports) == 0 {
			continue
		}
		policy := func(priority int, match string, hop netip.Addr, parts ...string) {
			out = append(out, row(Policy, map[string]any{
				"priority": priority, "match": match, "action": "reroute", "nexthops": []string{hop.String()},
			}, parts...).with(KeyPorts, portTexts(ports)).in(ClusterRouter))
		}
		// Only what comes from the pods' switch is meant: what comes back by the join switch has
		// been asked already. No chassis but the node's own has flows for it.
		leaving := fmt.Sprintf("is_chassis_resident(%q) && inport == %q && (%s) && ip%d.dst", port, PodPortPrefix+name, fromAny(ports), f)
		policy(policyPriority, leaving+" != {"+strings.Join(texts(g.inside(f)), ", ")+"}", own[0].Addr(), f.String())
		// A client may be hidden behind the node's own address: a pod of it that asks a VIP.
		for _, a := range byFamily(n.own, f) {
			policy(ownPriority, leaving+" == "+a.Addr().String(), own[0].Addr(), "own", a.Addr().String())
			for _, subnet := range byFamily(n.subnets, f) {
				policy(ownPriority, fmt.Sprintf("inport == %q && ip%d.src == %s && ip%d.dst == %s", ClusterRouterPort, f, subnet, f, a.Addr()),
					nth(subnet, managementHost), "home", a.Addr().String(), subnet.String())
			}
		}
	}
	return out
}

// nth is an address of a subnet by its number.
func nth(subnet netip.Prefix, n int) netip.Addr {
	a := subnet.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// inside are the networks to which no client of a VIP belongs.
func (g *Ground) inside(f world.Family) []netip.Prefix {
	inside := slices.Clone(byFamily(g.cluster.PodNets, f))
	for _, join := range byFamily(g.facts.Join, f) {
		inside = append(inside, join.Masked())
	}
	return inside
}

// aliasesOf are the load balancer's vips of a node's pods: aliases and what they are of.
func (g *Ground) aliasesOf(n *node, behind []Behind) map[string]string {
	vips := make(map[string]string, len(behind))
	for _, b := range behind {
		s, ok := g.shards[b.Shard]
		if !ok || b.Host || !slices.ContainsFunc(n.subnets, func(p netip.Prefix) bool { return p.Contains(b.Addr) && p.Addr() != b.Addr }) {
			continue
		}
		if a, ok := g.alias(s.ordinal, b.Addr); ok {
			vips[a.String()] = b.Addr.String()
		}
	}
	return vips
}

// fromAny matches what comes from any of some ports.
func fromAny(ports []Port) string {
	numbers := map[world.Protocol][]string{}
	for _, p := range sorted(ports) {
		numbers[p.Protocol] = append(numbers[p.Protocol], strconv.Itoa(int(p.Number)))
	}
	var from []string
	for _, protocol := range slices.Sorted(maps.Keys(numbers)) {
		from = append(from, fmt.Sprintf("%s.src == {%s}", strings.ToLower(string(protocol)), strings.Join(numbers[protocol], ", ")))
	}
	return strings.Join(from, " || ")
}

// sorted are distinct ports in order.
func sorted(ports []Port) []Port {
	return slices.Compact(slices.SortedFunc(slices.Values(ports), func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	}))
}

func portTexts(ports []Port) string {
	out := make([]string, 0, len(ports))
	for _, p := range sorted(ports) {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

// replyRows are the policies that send to a shard's router what comes from its aliases.
func (g *Ground) replyRows(s *shard) []Row {
	var out []Row
	for _, join := range s.join {
		f := world.FamilyOf(join.Addr())
		out = append(out, s.row(Policy, map[string]any{
			"priority": policyPriority, "match": through(f, s.ordinal), "action": "reroute",
			"nexthops": []string{join.Addr().String()},
		}, f.String()).in(ClusterRouter))
	}
	return out
}

// aliasRoutes let the cluster router's routing pass what comes from aliases on to its
// policies, which choose the shard; where to the routes point means nothing.
func (g *Ground) aliasRoutes() []Row {
	if len(g.order) == 0 {
		return nil
	}
	var out []Row
	for _, join := range g.order[0].join {
		f, source := world.FamilyOf(join.Addr()), "src-ip"
		out = append(out, owned(StaticRoute, OwnerAliases, f.String(), map[string]any{
			"ip_prefix": aliasesOf(f).prefix.String(), "nexthop": join.Addr().String(), "policy": &source,
		}).in(ClusterRouter))
	}
	return out
}
