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
	// policyPriority is in a range that OVN-Kubernetes does not use (502-1001).
	policyPriority = 700
	// internalNetPriority is above the policies that select a next hop.
	internalNetPriority = policyPriority + 1
	// nodeIPPriority is above the OVN-Kubernetes policies that send packets for a node's own addresses to the node
	// (1004).
	nodeIPPriority = 1010
	// aliasDropPriority is above all OVN-Kubernetes policies that reroute packets (10 to 1005).
	aliasDropPriority = 1011
	// managementHost is the host number of the node's management port on the subnet of its pods.
	managementHost = 2
)

// nodeJoinGap is the distance of the first node router address from the top of a join subnet. The addresses above it
// belong to shards.
const nodeJoinGap = maxOrdinal + 1

// ShardBackend is a destination of a shard on a node: a port of a pod, or of the node itself.
type ShardBackend struct {
	Shard       world.ShardID
	Addr        netip.Addr
	HostNetwork bool
	Port        Port
}

// Compare orders backends by shard, address, whether they are nodes, and port.
func (b ShardBackend) Compare(o ShardBackend) int {
	host := func(b ShardBackend) int {
		if b.HostNetwork {
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

// ForEachBackend calls use for each backend of a Service, including draining ones, with the backend's node. A backend
// can occur more than once.
func ForEachBackend(p *plan.Service, use func(node string, b ShardBackend)) {
	vips := p.VIPs // starting at the listener's VIP; both lists are sorted by address
	for _, l := range p.Listeners {
		for len(vips) > 0 && vips[0].Addr.Less(l.VIP) {
			vips = vips[1:]
		}
		if len(vips) == 0 || vips[0].Addr != l.VIP {
			continue
		}
		for _, list := range [][]plan.Backend{l.Backends, l.Draining} {
			for _, b := range list {
				use(b.Node, ShardBackend{vips[0].Shard, b.Addr.Addr(), b.HostNetwork, Port{l.Protocol, b.Addr.Port()}})
			}
		}
	}
}

// node is a node that can have a router of ours.
type node struct {
	plan.Node
	subnets     []netip.Prefix
	externalIPs []netip.Prefix // the node's external addresses
	// join are the addresses of our router on the join switch.
	join []netip.Prefix
}

// buildNodes assigns join addresses to the nodes that OVN-Kubernetes has set up. They mirror the addresses of its
// gateway routers, which it assigns in ascending order. Neither changes while the node exists, so no state is needed.
func (b *Builder) buildNodes(nodes []plan.Node) {
	for _, n := range nodes {
		f, ok := b.facts.Nodes[n.Name]
		if !ok {
			continue
		}
		out := &node{Node: n, subnets: f.Subnets, externalIPs: f.External}
		for _, gateway := range f.Join {
			if a := addrFromTop(gateway, nodeJoinGap); gateway.Addr().Less(a) && !b.facts.UsedAddrs[a] {
				out.join = append(out.join, netip.PrefixFrom(a, gateway.Bits()))
			}
		}
		if len(out.join) > 0 {
			b.nodes[n.Name] = out
		}
	}
}

// addrFromTop returns the address whose distance from the top of the subnet is gap plus the distance of p from the
// bottom.
func addrFromTop(p netip.Prefix, gap int) netip.Addr {
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

// NodeRows returns the rows of a node that has backends: its router, which tracks which shard each connection came
// through, and the rows that route packets to it. It returns nil if the node is not in the database.
//
// known returns the vips of the row with that ID that must be kept regardless of backends, or nil.
//
// The router is a gateway router bound to the node's own chassis, so that its connection state does not depend on
// which gateway of a shard is active. It translates aliases to pods' addresses, and the source of replies back. Packets
// that leave a pod from a port that backends listen on pass through it and always return to the cluster router:
// either as a reply from an alias, which is sent to the shard's router, or unchanged, to be routed as if our
// router did not exist.
func (b *Builder) NodeRows(name string, backends []ShardBackend, known func(id string) map[string]string) []Row {
	n, ok := b.nodes[name]
	if !ok {
		return nil
	}
	row, router, port := n.row, n.router(), n.port()
	pods := b.balancers(n, backends, false, known)
	limits := n.protection()
	out := []Row{
		limits,
		row(Router, map[string]any{"name": router, "options": n.options(), "copp": Ref{limits.Table, limits.ID}}),
		row(RouterPort, map[string]any{
			"name": port, "mac": world.HashMAC(b.cluster.ID + "|" + router), "networks": texts(n.join),
			"ha_chassis_group": (*string)(nil),
		}).withParent(router),
		row(SwitchPort, map[string]any{
			"name": "join-" + router, "type": "router", "addresses": []string{"router"},
			"options": map[string]string{"router-port": port}, "tag": (*int)(nil),
		}).withParent(JoinSwitch),
	}
	out = append(out, pods...)
	out = append(out, b.hostRows(n, b.balancers(n, backends, true, known))...)
	for _, join := range b.facts.Join {
		f := world.FamilyOf(join.Addr())
		own := byFamily(n.join, f)
		if len(own) == 0 {
			continue
		}
		out = append(out, b.nodeRoutes(n, join, own[0].Addr())...)
		if ports, addrs := backendsOf(pods, inFamily(f)); len(ports) > 0 {
			out = append(out, n.row(AddressSet, map[string]any{
				"name": backendSet(n.Name, f), "addresses": addrs,
			}, f.String()))
			out = append(out, b.nodePolicies(n, f, ports, own[0].Addr())...)
		}
	}
	return out
}

// nodeRoutes returns the routes of a node's router for the family of the join network, and those of the cluster router
// to it, at its own address there.
func (b *Builder) nodeRoutes(n *node, join netip.Prefix, own netip.Addr) []Row {
	f := world.FamilyOf(join.Addr())
	router := n.router()
	out := []Row{
		n.row(StaticRoute, map[string]any{
			"ip_prefix": netip.PrefixFrom(join.Addr(), 0).Masked().String(), "nexthop": join.Addr().String(),
		}, "back", f.String()).withParent(router),
		// Packets to an alias, or to a port of one, that no Service uses must not be routed back. They would loop.
		n.row(StaticRoute, map[string]any{
			"ip_prefix": aliasesOf(f).prefix.String(), "nexthop": discard,
		}, "unknown", f.String()).withParent(router),
	}
	for _, subnet := range byFamily(n.subnets, f) {
		if p, ok := aliasesOf(f).prefixOf(b.cluster.ClusterSubnets, subnet); ok {
			out = append(out, n.row(StaticRoute, map[string]any{
				"ip_prefix": p.String(), "nexthop": own.String(),
			}, "aliases", subnet.String()).withParent(ClusterRouter))
		}
	}
	return out
}

// backendSet returns the name of the Address_Set with the addresses of a node's backends of a family. Names of sets
// have no hyphens (ovn-nb(5), Address_Set), names of nodes no underscores, so each node has its own.
func backendSet(node string, f world.Family) string {
	return fmt.Sprintf("slb_backends_%s_ip%d", strings.ReplaceAll(node, "-", "_"), f)
}

// nodePolicies returns the policies of the cluster router that send packets which leave the node's backends from these
// ports to the node's router, at its own address on the join network. Those of other pods would not be routed as if our
// router did not exist: the policies for external gateways name the switch of the pods as the inport (ADR 7).
func (b *Builder) nodePolicies(n *node, f world.Family, ports map[Port]bool, own netip.Addr) (out []Row) {
	policy := func(priority int, match string, hop netip.Addr, parts ...string) {
		out = append(out, n.row(Policy, map[string]any{
			"priority": priority, "match": match, "action": "reroute", "nexthops": []string{hop.String()},
		}, parts...).withParent(ClusterRouter))
	}
	// Match only packets from the pods' switch: packets that return through the join switch have already passed the
	// node's router. Only the node's own chassis has flows for this policy. It is identified by the node's management
	// port, which is resident long before this row is written. OVN 23.03 can miss that a port becomes resident later,
	// as the port of our router does, and then has no flow until it recomputes everything.
	leaving := fmt.Sprintf("is_chassis_resident(%q) && inport == %q && (%s) && ip%d.src == $%s",
		ManagementPortPrefix+n.Name, PodPortPrefix+n.Name, portMatch(ports, "src"), f, backendSet(n.Name, f))
	internal := strings.Join(texts(b.internalSubnets(f)), ", ")
	if b.zone == nil {
		policy(policyPriority, fmt.Sprintf("%s && ip%d.dst != {%s}", leaving, f, internal), own, f.String())
	} else {
		// Three networks in one inequality would expand to so many flows that ovn-controller stops answering BFD.
		out = append(out, n.row(Policy, map[string]any{
			"priority": internalNetPriority, "action": "allow", "nexthops": []string{},
			"match": fmt.Sprintf("inport == %q && ip%d.dst == {%s}", PodPortPrefix+n.Name, f, internal),
		}, "internal", f.String()).withParent(ClusterRouter))
		policy(policyPriority, leaving, own, f.String())
	}
	// A client may be hidden behind the node's own address, namely a pod on the node that connects to a VIP.
	for _, a := range byFamily(n.externalIPs, f) {
		match := fmt.Sprintf("%s && ip%d.dst == %s", leaving, f, a.Addr())
		policy(nodeIPPriority, match, own, "own", a.Addr().String())
		for _, subnet := range byFamily(n.subnets, f) {
			match := fmt.Sprintf("inport == %q && ip%d.src == %s && ip%d.dst == %s", ClusterRouterPort, f, subnet, f, a.Addr())
			policy(nodeIPPriority, match, nth(subnet, managementHost), "home", a.Addr().String(), subnet.String())
		}
	}
	return out
}

// nth returns the nth address of a subnet.
func nth(subnet netip.Prefix, n int) netip.Addr {
	a := subnet.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// internalSubnets returns the networks that contain no clients of a VIP.
func (b *Builder) internalSubnets(f world.Family) []netip.Prefix {
	inside := slices.Clone(byFamily(b.cluster.ClusterSubnets, f))
	for _, join := range byFamily(b.facts.Join, f) {
		inside = append(inside, join.Masked())
	}
	if b.zone != nil {
		inside = append(inside, byFamily(b.facts.Nodes[b.zone.Node].Transit, f)...)
	}
	return inside
}

// aliasOn returns the alias of a backend on a node, or false if it has none there.
func (b *Builder) aliasOn(n *node, backend ShardBackend) (netip.Addr, bool) {
	s, ok := b.shards[backend.Shard]
	switch {
	case !ok:
		return netip.Addr{}, false
	case backend.HostNetwork:
		if !slices.ContainsFunc(n.Hosts, func(h world.Host) bool { return h.Addr == backend.Addr }) {
			return netip.Addr{}, false
		}
		return b.hostAlias(s.ordinal, n.Name, world.FamilyOf(backend.Addr))
	case !slices.ContainsFunc(n.subnets, func(p netip.Prefix) bool {
		return p.Contains(backend.Addr) && p.Addr() != backend.Addr
	}):
		return netip.Addr{}, false
	}
	return b.alias(s.ordinal, backend.Addr)
}

// balancers returns the load balancers of a node's pods, or of the node itself, one per protocol. They map ports of
// aliases to ports of the addresses they stand for, and contain only ports that a Service uses. Packets to other
// ports match nothing and end at the router.
func (b *Builder) balancers(
	n *node, backends []ShardBackend, host bool, known func(id string) map[string]string,
) []Row {
	vips := map[world.Protocol]map[string]string{}
	for _, protocol := range protocols() {
		vips[protocol] = map[string]string{}
	}
	for _, backend := range backends {
		if backend.HostNetwork != host {
			continue
		}
		if alias, ok := b.aliasOn(n, backend); ok {
			from, to := netip.AddrPortFrom(alias, backend.Port.Number), netip.AddrPortFrom(backend.Addr, backend.Port.Number)
			vips[backend.Port.Protocol][from.String()] = to.String()
			if host && b.facts.SkipsSNATForReplies {
				// Until the node has replied, OVN treats each packet of a connection as the first one, although its
				// destination is already translated. Without this key, such a packet (a retransmitted SYN, a second
				// query) would leave without its client being hidden. With it, packets to the node's address are
				// tracked here, including replies to a pod hidden behind that address.
				vips[backend.Port.Protocol][to.String()] = to.String()
			}
		}
	}
	var out []Row
	for _, protocol := range protocols() {
		row := n.balancer(protocol, host, vips[protocol])
		mergeMissing(vips[protocol], known(row.ID))
		if len(vips[protocol]) > 0 {
			out = append(out, row)
		}
	}
	return out
}

// mergeMissing adds the known aliases that are missing in vips.
func mergeMissing(vips, known map[string]string) {
	for alias, of := range known {
		if _, ok := vips[alias]; !ok {
			vips[alias] = of
		}
	}
}

func inFamily(f world.Family) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return world.FamilyOf(a) == f }
}

// backendsOf returns the ports of the load balancers' backends whose addresses satisfy meant, and these addresses.
func backendsOf(balancers []Row, meant func(netip.Addr) bool) (ports map[Port]bool, addrs []string) {
	ports = map[Port]bool{}
	distinct := map[string]bool{}
	for _, row := range balancers {
		vips, _ := row.Columns["vips"].(map[string]string)
		proto, _ := row.Columns["protocol"].(*string)
		for _, of := range vips {
			if a, err := netip.ParseAddrPort(of); err == nil && meant(a.Addr()) {
				ports[Port{world.Protocol(strings.ToUpper(*proto)), a.Port()}] = true
				distinct[a.Addr().String()] = true
			}
		}
	}
	return ports, slices.Sorted(maps.Keys(distinct))
}

// portMatch returns a match for packets with one of the ports on a side, src or dst.
func portMatch(ports map[Port]bool, side string) string {
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

// replyRows returns the policies that send packets from a shard's aliases, which come from node routers, to the
// shard's router.
func (b *Builder) replyRows(s *shard) []Row {
	var out []Row
	for _, join := range s.join {
		f := world.FamilyOf(join.Addr())
		match := fmt.Sprintf("inport == %q && %s", ClusterRouterPort, aliasMatch(f, s.ordinal))
		out = append(out, s.row(Policy, map[string]any{
			"priority": policyPriority, "match": match, "action": "reroute",
			"nexthops": []string{join.Addr().String()},
		}, f.String()).withParent(ClusterRouter))
	}
	return out
}
