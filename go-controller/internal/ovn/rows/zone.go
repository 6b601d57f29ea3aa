// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// With interconnect each node has its own databases: a zone. A shard then has two routers. Its own router, with the
// port on the segment and the load balancers, is only in the zones of its gateways. Its return router is in all zones,
// behind the join switch, and has a port that only the active gateway has, with the same HA chassis group and the same
// tunnel keys in every zone. A reply therefore enters the return router of the backend's own zone and leaves it,
// through the tunnel, in the zone of the active gateway. ovn-controller selects that gateway by BFD; no northbound
// database is involved.
//
//	segment - shard router - inner switch - return router - join switch - ovn_cluster_router - transit switch
//
// The shard's own router can't be in all zones: it resolves the client's MAC address before it redirects a packet, and
// only the gateway's southbound database has that address.

// The addresses between the two routers of a shard. They are the same for all shards, since no packet has them.
const (
	innerShard4, innerReturn4, innerBits4 = "169.254.252.1", "169.254.252.2", 30
	innerShard6, innerReturn6, innerBits6 = "fd3e:5b1d::1", "fd3e:5b1d::2", 126
)

// Tunnel keys (ovn-nb(5), requested-tnl-key). Each shard has two datapaths with requested keys, counted down from the
// top of ovn-northd's own range. OVN-Kubernetes and ovn-ic use the ranges above. A port with a requested key leaves the
// lowest keys, which ovn-northd assigns in ascending order, to the port that gateways claim and its redirect port.
const (
	topDatapathKey = 16711679
	highestPortKey = "32767"
	secondPortKey  = "32766"
)

func shardRouterKey(ordinal int) string  { return strconv.Itoa(topDatapathKey - 2*ordinal) }
func returnRouterKey(ordinal int) string { return strconv.Itoa(topDatapathKey - 2*ordinal - 1) }

// ReturnRouterName returns the name of a shard's return router.
func ReturnRouterName(id world.ShardID) string {
	return fmt.Sprintf("%s%s-%d", returnRouterPrefix, id.Domain, id.Index)
}

// ReturnRedirectKey is the tunnel key that the redirect port of a return router must have in all zones.
const ReturnRedirectKey = 2

// ParseReturnRedirectPort returns the name of the return router that has a redirect port (type chassisredirect in the
// southbound database), or false if no return router has it.
func ParseReturnRedirectPort(name string) (router string, ok bool) {
	router, prefixed := strings.CutPrefix(name, "cr-")
	router, suffixed := strings.CutSuffix(router, "-out")
	return router, prefixed && suffixed && strings.HasPrefix(router, returnRouterPrefix)
}

const returnRouterPrefix = "slbreturn-" // unlike any name of a shard's router

func innerSwitch(id world.ShardID) string { return fmt.Sprintf("slbinner-%s-%d", id.Domain, id.Index) }

// zoneOptions returns the options of a router in a zone. All its neighbours are in the same database, and it must not
// resolve their MAC addresses itself: its gateway port may be in another zone.
func zoneOptions(key string) map[string]string {
	return map[string]string{
		"dynamic_neigh_routers":         "false",
		"always_learn_from_arp_request": "false",
		"mcast_relay":                   "false",
		"requested-tnl-key":             key,
	}
}

// zoneShardRows returns the rows of a shard in one zone.
func (g *Builder) zoneShardRows(s *shard) []Row {
	group := s.row(HAChassisGroup, map[string]any{"name": RouterName(s.ID)})
	ref := Ref{group.Table, group.ID}
	out := append([]Row{group}, g.chassisRows(s, group.Name())...)
	out = append(out, g.witnessRows(s, group.Name())...)
	out = append(out, g.returnRouterRows(s, ref)...)
	if s.local {
		out = append(out, g.gatewayRows(s, ref)...)
	} else {
		out = append(out, g.remoteShardRow(s))
	}
	return append(out, g.replyRows(s)...)
}

// witnessRows returns the members of a shard's HA chassis group that are not gateways. In the zone of a gateway these
// are all other nodes: BFD runs only between members, and the replies of a node without BFD to the gateways are lost. A
// witness never claims a shard, because its own zone has no router of it.
//
// In the zone of a node that is no gateway there is one, if there is only one gateway: ovn-controller redirects to the
// members of a group only if it has at least two. Otherwise it takes the chassis that claims the port according to the
// node's own southbound database, which does not have the claim.
func (g *Builder) witnessRows(s *shard, group string) []Row {
	var witnesses []string
	for _, n := range g.peers {
		isGateway := slices.ContainsFunc(s.Gateways, func(gw plan.Gateway) bool { return gw.Chassis == n.Chassis })
		if n.Chassis != "" && !isGateway {
			witnesses = append(witnesses, n.Chassis)
		}
	}
	if !s.local {
		others := slices.DeleteFunc(slices.Clone(witnesses), func(c string) bool { return c == g.zone.Chassis })
		witnesses = append(others, g.zone.Chassis)[:1]
		if len(s.Gateways) > 1 {
			witnesses = nil
		}
	}
	var out []Row
	for _, chassis := range witnesses {
		out = append(out, s.row(HAChassis, map[string]any{"chassis_name": chassis, "priority": witnessPriority},
			"chassis", chassis).withParent(group))
	}
	return out
}

// returnRouterRows returns the rows of a shard's return router and the switch between the two routers.
func (g *Builder) returnRouterRows(s *shard, group Ref) []Row {
	router := ReturnRouterName(s.ID)
	join := g.connect(s, "return-join", router, router+"-join", JoinSwitch, texts(s.join), nil)
	join[0].Columns["options"] = map[string]string{"requested-tnl-key": highestPortKey}
	out := []Row{
		s.row(Router, map[string]any{"name": router, "options": zoneOptions(returnRouterKey(s.ordinal)),
			"copp": protectionRef()}, "return"),
		s.row(Switch, map[string]any{"name": innerSwitch(s.ID)}, "inner"),
	}
	out = append(out, join...)
	out = append(out, g.connect(s, "return-out", router, router+"-out", innerSwitch(s.ID),
		g.innerNetworks(innerReturn4, innerReturn6), group)...)
	route := func(prefix, nexthop string) {
		out = append(out, s.row(StaticRoute, map[string]any{"ip_prefix": prefix, "nexthop": nexthop}, "return", prefix).
			withParent(router))
	}
	for _, join := range g.facts.Join {
		f := world.FamilyOf(join.Addr())
		hop := innerShard4
		if f == world.IPv6 {
			hop = innerShard6
		}
		route(netip.PrefixFrom(join.Addr(), 0).Masked().String(), hop)
		route(aliasesOf(f).prefix.String(), join.Addr().String())
	}
	return out
}

// innerNetworks returns the networks of a port on the inner switch, one per family of the join switch.
func (g *Builder) innerNetworks(addr4, addr6 string) []string {
	var networks []string
	for _, join := range g.facts.Join {
		if world.FamilyOf(join.Addr()) == world.IPv4 {
			networks = append(networks, fmt.Sprintf("%s/%d", addr4, innerBits4))
		} else {
			networks = append(networks, fmt.Sprintf("%s/%d", addr6, innerBits6))
		}
	}
	slices.Sort(networks)
	return networks
}

// gatewayRows returns the rows of a shard's own router in the zone of a gateway.
func (g *Builder) gatewayRows(s *shard, group Ref) []Row {
	router := RouterName(s.ID)
	inner := g.connect(s, "inner", router, router+"-inner", innerSwitch(s.ID),
		g.innerNetworks(innerShard4, innerShard6), nil)
	inner[0].Columns["options"] = map[string]string{"requested-tnl-key": highestPortKey}
	out := append([]Row{
		s.row(Router, protectedRouter(router, zoneOptions(shardRouterKey(s.ordinal)))).
			with(KeyOrdinal, strconv.Itoa(s.ordinal)),
	}, inner...)
	out = append(out, g.externalPortRows(s, group)...)
	if g.hasInPort(s) {
		out = append(out, g.inPortRows(s)...)
	}
	var inward []netip.Addr
	for _, join := range g.facts.Join {
		hop := innerReturn4
		if world.FamilyOf(join.Addr()) == world.IPv6 {
			hop = innerReturn6
		}
		inward = append(inward, netip.MustParseAddr(hop))
	}
	return append(out, g.routeRows(s, inward)...)
}

// inPortRows returns the in-port of a shard in the zone of a gateway. Packets do not pass the switch of the domain on
// this path, so it has an ACL like that one. The ACL matches only what the in-port would accept (ovn-northd(8), router
// ingress table 0, "L2 Admission Control"), because OVN-Kubernetes uses the switch as well.
func (g *Builder) inPortRows(s *shard) []Row {
	router := RouterName(s.ID)
	in := g.connect(s, "in", router, router+"-in", ExternalSwitchPrefix+g.zone.Node,
		[]string{s.inPortNetwork()}, nil)
	in[0].Columns["mac"] = PortMAC(g.cluster.ID, s.ID)
	in[0].Columns["options"] = map[string]string{
		"reside-on-redirect-chassis": "true", "requested-tnl-key": secondPortKey,
	}
	match := fmt.Sprintf("(eth.dst == %s || eth.mcast) && (%s)", PortMAC(g.cluster.ID, s.ID), g.internalPackets())
	return append(in, s.row(ACL, map[string]any{
		"priority": internalPriority, "direction": "from-lport", "match": match, "action": "drop",
	}, "in", "internal").withParent(ExternalSwitchPrefix+g.zone.Node))
}

// remoteShardRow returns the port that stands for a shard's own router in the zone of a node that is no gateway. The
// return router only needs its MAC address, to pass a packet on to the gateway.
func (g *Builder) remoteShardRow(s *shard) Row {
	address := mac(g.cluster.ID, s.ID, "inner")
	for _, join := range g.facts.Join {
		if world.FamilyOf(join.Addr()) == world.IPv4 {
			address += " " + innerShard4
		} else {
			address += " " + innerShard6
		}
	}
	return s.row(SwitchPort, map[string]any{
		"name": "remote-" + RouterName(s.ID), "type": "", "addresses": []string{address}, "options": map[string]string{},
		"tag": (*int)(nil),
	}, "remote").withParent(innerSwitch(s.ID))
}

// isAttached reports whether the database has the switch of a domain: always, but in a zone only if the node is a
// gateway of the domain or has to keep a port on its bridge.
func (g *Builder) isAttached(d *plan.Domain) bool {
	return g.zone == nil || len(g.localResidents(d)) > 0 ||
		slices.ContainsFunc(g.shardList, func(s *shard) bool { return s.domain == d && s.local })
}

// localResidents returns the residents of a domain that the database configures.
func (g *Builder) localResidents(d *plan.Domain) []string {
	if g.zone == nil {
		return d.Residents
	}
	if slices.Contains(d.Residents, g.zone.Chassis) {
		return []string{g.zone.Chassis}
	}
	return nil
}

// remoteAliasRows returns the routes from the zone of a gateway to the aliases of other nodes' pods, through the
// transit switch. Other zones send no requests.
func (g *Builder) remoteAliasRows() []Row {
	if !slices.ContainsFunc(g.shardList, func(s *shard) bool { return s.local }) {
		return nil
	}
	var out []Row
	for _, n := range g.peers {
		if g.zone == nil || n.Name == g.zone.Node {
			continue
		}
		for _, subnet := range n.PodSubnets {
			f := world.FamilyOf(subnet.Addr())
			p, ok := aliasesOf(f).prefixOf(g.cluster.PodNets, subnet)
			hops := byFamily(n.Transit, f)
			if !ok || len(hops) == 0 || len(byFamily(g.facts.Join, f)) == 0 {
				continue
			}
			out = append(out, owned(StaticRoute, OwnerAliases, f.String(), map[string]any{
				"ip_prefix": p.String(), "nexthop": hops[0].Addr().String(), "policy": (*string)(nil),
			}, "zone", n.Name, subnet.String()).withParent(ClusterRouter))
		}
	}
	return out
}
