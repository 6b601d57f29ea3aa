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
func (b *Builder) zoneShardRows(s *shard) []Row {
	group := s.row(HAChassisGroup, map[string]any{"name": RouterName(s.ID)})
	ref := Ref{group.Table, group.ID}
	out := append([]Row{group}, b.chassisRows(s, group.Name())...)
	out = append(out, b.witnessRows(s, group.Name())...)
	out = append(out, b.returnRouterRows(s, ref)...)
	if s.local {
		out = append(out, b.gatewayRows(s, ref)...)
	} else {
		out = append(out, b.remoteShardRow(s))
	}
	return append(out, b.replyRows(s)...)
}

// witnessRows returns the members of a shard's HA chassis group that are not gateways. In the zone of a gateway these
// are all other nodes: BFD runs only between members, and the replies of a node without BFD to the gateways are lost. A
// witness never claims a shard, because its own zone has no router of it.
//
// In the zone of a node that is no gateway there is one, if there is only one gateway: ovn-controller redirects to the
// members of a group only if it has at least two. Otherwise it takes the chassis that claims the port according to the
// node's own southbound database, which does not have the claim.
func (b *Builder) witnessRows(s *shard, group string) []Row {
	var witnesses []string
	for _, n := range b.peers {
		isGateway := slices.ContainsFunc(s.Gateways, func(gw plan.Gateway) bool { return gw.Chassis == n.Chassis })
		if n.Chassis != "" && !isGateway {
			witnesses = append(witnesses, n.Chassis)
		}
	}
	if !s.local {
		others := slices.DeleteFunc(slices.Clone(witnesses), func(c string) bool { return c == b.zone.Chassis })
		witnesses = append(others, b.zone.Chassis)[:1]
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
func (b *Builder) returnRouterRows(s *shard, group Ref) []Row {
	router := ReturnRouterName(s.ID)
	join := b.connect(s, "return-join", router, router+"-join", JoinSwitch, texts(s.join), nil)
	join[0].Columns["options"] = map[string]string{"requested-tnl-key": highestPortKey}
	out := []Row{
		s.row(Router, map[string]any{"name": router, "options": zoneOptions(returnRouterKey(s.ordinal)),
			"copp": protectionRef()}, "return"),
		s.row(Switch, map[string]any{"name": innerSwitch(s.ID)}, "inner"),
	}
	out = append(out, join...)
	out = append(out, b.connect(s, "return-out", router, router+"-out", innerSwitch(s.ID),
		b.innerNetworks(innerReturn4, innerReturn6), group)...)
	route := func(prefix, nexthop string) {
		out = append(out, s.row(StaticRoute, map[string]any{"ip_prefix": prefix, "nexthop": nexthop}, "return", prefix).
			withParent(router))
	}
	for _, join := range b.facts.Join {
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
func (b *Builder) innerNetworks(addr4, addr6 string) []string {
	var networks []string
	for _, join := range b.facts.Join {
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
func (b *Builder) gatewayRows(s *shard, group Ref) []Row {
	router := RouterName(s.ID)
	inner := b.connect(s, "inner", router, router+"-inner", innerSwitch(s.ID),
		b.innerNetworks(innerShard4, innerShard6), nil)
	inner[0].Columns["options"] = map[string]string{"requested-tnl-key": highestPortKey}
	out := append([]Row{
		s.row(Router, protectedRouter(router, zoneOptions(shardRouterKey(s.ordinal)))).
			with(KeyOrdinal, strconv.Itoa(s.ordinal)),
	}, inner...)
	out = append(out, b.externalPortRows(s, group)...)
	if b.hasInPort(s) {
		out = append(out, b.inPortRows(s)...)
	}
	var inward []netip.Addr
	for _, join := range b.facts.Join {
		hop := innerReturn4
		if world.FamilyOf(join.Addr()) == world.IPv6 {
			hop = innerReturn6
		}
		inward = append(inward, netip.MustParseAddr(hop))
	}
	out = append(out, b.routeRows(s, inward)...)
	return append(out, b.forwardingRows(s)...)
}

// inPortRows returns the in-port of a shard in the zone of a gateway. Packets do not pass the switch of the domain on
// this path, so it has an ACL like that one. The ACL matches only what the in-port would accept (ovn-northd(8), router
// ingress table 0, "L2 Admission Control"), because OVN-Kubernetes uses the switch as well.
func (b *Builder) inPortRows(s *shard) []Row {
	router := RouterName(s.ID)
	in := b.connect(s, "in", router, inPort(s.ID), ExternalSwitchPrefix+b.zone.Node,
		[]string{s.inPortNetwork()}, nil)
	in[0].Columns["mac"] = s.ID.SegmentMAC(b.cluster.ID)
	in[0].Columns["options"] = map[string]string{
		"reside-on-redirect-chassis": "true", "requested-tnl-key": secondPortKey,
	}
	match := fmt.Sprintf("(eth.dst == %s || eth.mcast) && (%s)", s.ID.SegmentMAC(b.cluster.ID),
		b.unwantedPackets(s.domain))
	return append(in, s.row(ACL, map[string]any{
		"priority": internalPriority, "direction": "from-lport", "match": match, "action": "drop",
	}, "in", "internal").withParent(ExternalSwitchPrefix+b.zone.Node))
}

// remoteShardRow returns the port that stands for a shard's own router in the zone of a node that is no gateway. The
// return router only needs its MAC address, to pass a packet on to the gateway.
func (b *Builder) remoteShardRow(s *shard) Row {
	address := s.ID.PortMAC(b.cluster.ID, "inner")
	for _, join := range b.facts.Join {
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
func (b *Builder) isAttached(d *plan.Domain) bool {
	return b.zone == nil || len(b.localResidents(d)) > 0 ||
		slices.ContainsFunc(b.shardList, func(s *shard) bool { return s.domain == d && s.local })
}

// localResidents returns the residents of a domain that the database configures.
func (b *Builder) localResidents(d *plan.Domain) []string {
	if b.zone == nil {
		return d.Residents
	}
	if slices.Contains(d.Residents, b.zone.Chassis) {
		return []string{b.zone.Chassis}
	}
	return nil
}

// remoteAliasRows returns the routes from the zone of a gateway to the aliases of other nodes' pods, through the
// transit switch. Other zones send no requests.
func (b *Builder) remoteAliasRows() []Row {
	if !slices.ContainsFunc(b.shardList, func(s *shard) bool { return s.local }) {
		return nil
	}
	var out []Row
	for _, n := range b.peers {
		if b.zone == nil || n.Name == b.zone.Node {
			continue
		}
		for _, subnet := range n.PodSubnets {
			f := world.FamilyOf(subnet.Addr())
			p, ok := aliasesOf(f).prefixOf(b.cluster.ClusterSubnets, subnet)
			hops := byFamily(n.Transit, f)
			if !ok || len(hops) == 0 || len(byFamily(b.facts.Join, f)) == 0 {
				continue
			}
			out = append(out, owned(StaticRoute, OwnerAliases, f.String(), map[string]any{
				"ip_prefix": p.String(), "nexthop": hops[0].Addr().String(), "policy": (*string)(nil),
			}, "zone", n.Name, subnet.String()).withParent(ClusterRouter))
		}
	}
	return out
}
