// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
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
	// guardPriority comes before any policy that OVN-Kubernetes sends a packet away by (10 to 1005).
	guardPriority = 1011
	// managementHost is the number of the node's own port on its pods' subnet.
	managementHost = 2
)

// nodeJoinGap is how many addresses below the top of a join subnet the node routers'
// begin: above are those of shards.
const nodeJoinGap = maxOrdinal + 1

// Behind is what a shard sends to on a node: a port of a pod, or of the node itself.
type Behind struct {
	Shard world.ShardID
	Addr  netip.Addr
	Host  bool
	Port  Port
}

// Compare orders backends by shard, address, whether they are nodes, and port.
func (b Behind) Compare(o Behind) int {
	host := func(b Behind) int {
		if b.Host {
			return 1
		}
		return 0
	}
	return cmp.Or(b.Shard.Compare(o.Shard), b.Addr.Compare(o.Addr), host(b)-host(o),
		cmp.Compare(b.Port.Protocol, o.Port.Protocol), cmp.Compare(b.Port.Number, o.Port.Number))
}

// Port is a port that backends listen on.
type Port struct {
	Protocol world.Protocol
	Number   uint16
}

// Returns calls use for each backend that a Service has, draining ones too, with its node; a
// backend can come more than once.
func Returns(p *plan.Service, use func(node string, b Behind)) {
	vips := p.VIPs // from the listener's on: both lists are sorted by address
	for _, l := range p.Listeners {
		for len(vips) > 0 && vips[0].Addr.Less(l.VIP) {
			vips = vips[1:]
		}
		if len(vips) == 0 || vips[0].Addr != l.VIP {
			continue
		}
		for _, list := range [][]plan.Backend{l.Backends, l.Draining} {
			for _, b := range list {
				use(b.Node, Behind{vips[0].Shard, b.Addr.Addr(), b.Host, Port{l.Protocol, b.Addr.Port()}})
			}
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
// known returns the vips of the row with that id that must stay, whatever is behind; nil for none.
//
// The router is a gateway router, bound to the node's own chassis, so that what it knows
// does not depend on which gateway carries a shard. It turns aliases into pods'
// addresses, and the source of their replies back. What left a pod from a port that
// backends listen on passes it, and goes back to the cluster router in any case: as a
// reply from an alias, which goes on to the shard's router, or unchanged, to go on as if
// we were not there.
func (g *Ground) NodeRows(name string, behind []Behind, known func(id string) map[string]string) []Row {
	n, ok := g.nodes[name]
	if !ok {
		return nil
	}
	row, router, port := n.row, n.router(), n.port()
	pods := g.balancers(n, behind, false, known)
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
	}
	out = append(out, pods...)
	out = append(out, g.hostRows(n, g.balancers(n, behind, true, known))...)
	for _, join := range g.facts.Join {
		f := world.FamilyOf(join.Addr())
		own := byFamily(n.join, f)
		if len(own) == 0 {
			continue
		}
		out = append(out, row(StaticRoute, map[string]any{
			"ip_prefix": netip.PrefixFrom(join.Addr(), 0).Masked().String(), "nexthop": join.Addr().String(),
		}, "back", f.String()).in(router))
		// An alias, or a port of one, that no Service has must not go back: it would come again.
		out = append(out, row(StaticRoute, map[string]any{
			"ip_prefix": aliasesOf(f).prefix.String(), "nexthop": discard,
		}, "unknown", f.String()).in(router))
		for _, subnet := range byFamily(n.subnets, f) {
			if p, ok := aliasesOf(f).of(g.cluster.PodNets, subnet); ok {
				out = append(out, row(StaticRoute, map[string]any{
					"ip_prefix": p.String(), "nexthop": own[0].Addr().String(),
				}, "aliases", subnet.String()).in(ClusterRouter))
			}
		}
		ports := served(pods, func(a netip.Addr) bool { return world.FamilyOf(a) == f })
		if len(ports) == 0 {
			continue
		}
		policy := func(priority int, match string, hop netip.Addr, parts ...string) {
			out = append(out, row(Policy, map[string]any{
				"priority": priority, "match": match, "action": "reroute", "nexthops": []string{hop.String()},
			}, parts...).in(ClusterRouter))
		}
		// Only what comes from the pods' switch is meant: what comes back by the join switch has
		// been asked already. No chassis but the node's own has flows for it: the one with the node's management
		// port, which is resident long before this row is written. OVN 23.03 can miss that a port becomes resident
		// later, as the port of our router does, and then has no flow until it computes everything again.
		leaving := fmt.Sprintf("is_chassis_resident(%q) && inport == %q && (%s) && ip%d.dst",
			ManagementPortPrefix+name, PodPortPrefix+name, anyOf(ports, "src"), f)
		policy(policyPriority, leaving+" != {"+strings.Join(texts(g.inside(f)), ", ")+"}", own[0].Addr(), f.String())
		// A client may be hidden behind the node's own address: a pod of it that asks a VIP.
		for _, a := range byFamily(n.own, f) {
			policy(ownPriority, leaving+" == "+a.Addr().String(), own[0].Addr(), "own", a.Addr().String())
			for _, subnet := range byFamily(n.subnets, f) {
				match := fmt.Sprintf("inport == %q && ip%d.src == %s && ip%d.dst == %s", ClusterRouterPort, f, subnet, f, a.Addr())
				policy(ownPriority, match, nth(subnet, managementHost), "home", a.Addr().String(), subnet.String())
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

// aliasOn is the alias of a backend on a node; false if it has none there.
func (g *Ground) aliasOn(n *node, b Behind) (netip.Addr, bool) {
	s, ok := g.shards[b.Shard]
	switch {
	case !ok:
		return netip.Addr{}, false
	case b.Host:
		if !slices.ContainsFunc(n.Hosts, func(h world.Host) bool { return h.Addr == b.Addr }) {
			return netip.Addr{}, false
		}
		return g.hostAlias(s.ordinal, n.Name, world.FamilyOf(b.Addr))
	case !slices.ContainsFunc(n.subnets, func(p netip.Prefix) bool { return p.Contains(b.Addr) && p.Addr() != b.Addr }):
		return netip.Addr{}, false
	}
	return g.alias(s.ordinal, b.Addr)
}

// balancers are the load balancers of a node's pods, or of the node itself, one a
// protocol: ports of aliases, and what they are of. Only the ports that a Service has are there: a packet for
// another one finds nothing, and ends at the router.
func (g *Ground) balancers(n *node, behind []Behind, host bool, known func(id string) map[string]string) []Row {
	vips := map[world.Protocol]map[string]string{}
	for _, protocol := range protocols() {
		vips[protocol] = map[string]string{}
	}
	for _, b := range behind {
		if b.Host != host {
			continue
		}
		if alias, ok := g.aliasOn(n, b); ok {
			from, to := netip.AddrPortFrom(alias, b.Port.Number), netip.AddrPortFrom(b.Addr, b.Port.Number)
			vips[b.Port.Protocol][from.String()] = to.String()
			if host && g.facts.RepliesUnhidden {
				// Until the node has answered, OVN takes each packet of a connection for the first one, but has translated it
				// already: without this key it would not hide its client, and leave (a SYN that is sent again, a second query).
				// With it, what is for the node's address is tracked here, replies to a pod hidden behind it among them.
				vips[b.Port.Protocol][to.String()] = to.String()
			}
		}
	}
	var out []Row
	for _, protocol := range protocols() {
		row := n.balancer(protocol, host, vips[protocol])
		recall(vips[protocol], known(row.ID))
		if len(vips[protocol]) > 0 {
			out = append(out, row)
		}
	}
	return out
}

// recall adds the aliases that are known and not among those wanted.
func recall(vips, known map[string]string) {
	for alias, of := range known {
		if _, ok := vips[alias]; !ok {
			vips[alias] = of
		}
	}
}

// served are the ports of those addresses behind load balancers that are meant.
func served(balancers []Row, meant func(netip.Addr) bool) map[Port]bool {
	ports := map[Port]bool{}
	for _, row := range balancers {
		vips, _ := row.Columns["vips"].(map[string]string)
		proto, _ := row.Columns["protocol"].(*string)
		for _, of := range vips {
			if a, err := netip.ParseAddrPort(of); err == nil && meant(a.Addr()) {
				ports[Port{world.Protocol(strings.ToUpper(*proto)), a.Port()}] = true
			}
		}
	}
	return ports
}

// anyOf matches packets with one of some ports on a side, src or dst.
func anyOf(ports map[Port]bool, side string) string {
	numbers := map[world.Protocol][]int{}
	for p := range ports {
		numbers[p.Protocol] = append(numbers[p.Protocol], int(p.Number))
	}
	var matches []string
	for _, protocol := range slices.Sorted(maps.Keys(numbers)) {
		slices.Sort(numbers[protocol])
		set := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(numbers[protocol]), "[]")), ", ")
		matches = append(matches, fmt.Sprintf("%s.%s == {%s}", strings.ToLower(string(protocol)), side, set))
	}
	return strings.Join(matches, " || ")
}

// replyRows are the policies that send to a shard's router what node routers send from its aliases.
func (g *Ground) replyRows(s *shard) []Row {
	var out []Row
	for _, join := range s.join {
		f := world.FamilyOf(join.Addr())
		match := fmt.Sprintf("inport == %q && %s", ClusterRouterPort, through(f, s.ordinal))
		out = append(out, s.row(Policy, map[string]any{
			"priority": policyPriority, "match": match, "action": "reroute",
			"nexthops": []string{join.Addr().String()},
		}, f.String()).in(ClusterRouter))
	}
	return out
}
