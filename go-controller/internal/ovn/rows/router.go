// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The BFD session of a shard runs over a route to an unused address, one of TEST-NET-1 (RFC 5737) or of the discard
// prefix (RFC 6666). If it ran over the default route, it would withdraw that route whenever the gateway does not
// reply.
const (
	dummyRoute4 = "192.0.2.255/32"
	dummyRoute6 = "100::ffff/128"
	// bfdMultiplier is stable with FRR's bfdd as the peer. No peer is required.
	bfdMultiplier = 5
)

// bfdInterval returns the interval between two BFD frames of a shard, in milliseconds. The frames carry the router's
// MAC address and thereby update the forwarding tables of switches. A gateway that claims a shard sends the first
// frame at once, often before its own flows would let it out. During a handover the interval is short, so that the
// next frame follows soon. The interval changes again when the claim is observed. This makes the gateway process
// the session, which may otherwise happen only a second later.
func bfdInterval(h world.Handover) int {
	switch h {
	case world.HandoverAwaited:
		return 10
	case world.HandoverClaimed:
		return 11
	case world.NoHandover:
	}
	return 300 // stable with FRR's bfdd as the peer
}

// HandoverOf is the inverse of bfdInterval.
func HandoverOf(millis int) world.Handover {
	for _, h := range []world.Handover{world.HandoverAwaited, world.HandoverClaimed} {
		if millis == bfdInterval(h) {
			return h
		}
	}
	return world.NoHandover
}

// TopologyRows returns the topology rows in the order in which they can be written: one slice per domain (its external
// switch), then the limits of the routers of shards, one per shard, then those that several shards share and, per
// gateway, those of its in-ports.
func (b *Builder) TopologyRows() (domains, shards [][]Row) {
	for _, d := range b.domains {
		if b.isAttached(d) {
			domains = append(domains, b.domainRows(d))
		}
	}
	if len(b.shardList) > 0 {
		shards = append(shards, protectionRows())
	}
	for _, s := range b.shardList {
		if b.zone != nil {
			shards = append(shards, b.zoneShardRows(s))
		} else {
			shards = append(shards, b.shardRows(s))
		}
	}
	shards = append(shards, b.aliasRows(), b.remoteAliasRows(), b.clientRows())
	return domains, append(shards, b.inRouters()...)
}

func (b *Builder) domainRows(d *plan.Domain) []Row {
	name := switchName(d.Name)
	out := []Row{owned(Switch, OwnerDomain, d.Name, map[string]any{"name": name}), b.localnetRow(d), b.segmentACL(d)}
	return append(out, b.residentRows(d)...)
}

// localnetRow returns the port that connects the switch of a domain to its segment.
func (b *Builder) localnetRow(d *plan.Domain) Row {
	var tag *int
	if d.VLAN != 0 {
		tag = &d.VLAN
	}
	port := owned(SwitchPort, OwnerDomain, d.Name, map[string]any{
		"name":      plan.LocalnetPort(d.Name),
		"type":      "localnet",
		"addresses": b.localnetAddresses(d.Name),
		"options":   map[string]string{"network_name": d.PhysicalNetwork},
		"tag":       tag,
	}, "localnet").withParent(switchName(d.Name))
	if d.Announce > 0 {
		port = port.with(KeyAnnounce, strconv.FormatInt(int64(d.Announce/time.Second), 10))
	}
	return port
}

// residentRows returns the rows that make the switch of a domain local to the chassis of its residents, so that
// ovn-controller keeps the switch's port on their bridges before the first address exists and after the last one is
// gone. A port of type external (ovn-nb(5)) does that: it needs no address, and its switch is local to the chassis of
// its HA chassis group. Each chassis has its own group, because ovn-controller starts BFD between all chassis of a
// group.
func (b *Builder) residentRows(d *plan.Domain) []Row {
	var out []Row
	for _, chassis := range b.localResidents(d) {
		name := switchName(d.Name) + "-resident-" + chassis
		row := func(table string, columns map[string]any) Row {
			return owned(table, OwnerDomain, d.Name, columns, "resident", chassis)
		}
		group := row(HAChassisGroup, map[string]any{"name": name})
		out = append(out, group,
			row(HAChassis, map[string]any{"chassis_name": chassis, "priority": 1}).withParent(name),
			row(SwitchPort, map[string]any{
				"name": name, "type": "external", "addresses": []string{}, "options": map[string]string{}, "tag": (*int)(nil),
				"ha_chassis_group": Ref{group.Table, group.ID},
			}).withParent(switchName(d.Name)))
	}
	return out
}

// row returns a row of a shard.
func (s *shard) row(table string, columns map[string]any, parts ...string) Row {
	name := s.ID.Name()
	return owned(table, OwnerShard, name, columns, parts...).with(KeyShard, name)
}

func (b *Builder) shardRows(s *shard) []Row {
	router := RouterName(s.ID)
	group := s.row(HAChassisGroup, map[string]any{"name": router})
	out := []Row{
		s.row(Router, protectedRouter(router, map[string]string{
			"dynamic_neigh_routers":         "true",
			"always_learn_from_arp_request": "false",
			"mcast_relay":                   "false",
		})).with(KeyOrdinal, strconv.Itoa(s.ordinal)),
		group,
	}
	out = append(out, b.chassisRows(s, router)...)
	out = append(out, b.connect(s, "join", router, joinPort(s.ID), JoinSwitch, texts(s.join), nil)...)
	out = append(out, b.externalPortRows(s, Ref{group.Table, group.ID})...)
	out = append(out, b.routeRows(s, b.clusterRouterAddrs())...)
	out = append(out, b.forwardingRows(s)...)
	return append(out, b.replyRows(s)...)
}

// clusterRouterAddrs returns the addresses of the cluster router on the join switch.
func (b *Builder) clusterRouterAddrs() []netip.Addr {
	var addrs []netip.Addr
	for _, join := range b.facts.Join {
		addrs = append(addrs, join.Addr())
	}
	return addrs
}

// The priorities of the members of an HA chassis group: gateways have lowestGateway and higher ones, then comes a
// gateway that stepped down, then the witnesses (zone.go).
const (
	lowestGateway   = 10
	SteppedDown     = 5
	witnessPriority = 1
)

// IsGatewayPriority reports whether a member of an HA chassis group is a gateway that has not stepped down.
func IsGatewayPriority(priority int) bool { return priority >= lowestGateway }

// chassisRows returns the members of the HA chassis group. A gateway keeps its row and only its priority changes, so
// a change of order is one transaction of updates.
func (b *Builder) chassisRows(s *shard, group string) []Row {
	var chassis []string
	seen := map[string]bool{"": true}
	for _, gw := range s.Gateways {
		if !seen[gw.Chassis] {
			seen[gw.Chassis] = true
			chassis = append(chassis, gw.Chassis)
		}
	}
	var out []Row
	for i, name := range chassis {
		row := s.row(HAChassis, map[string]any{
			"chassis_name": name,
			"priority":     lowestGateway * (max(len(chassis), 10) - i),
		}, "chassis", name).withParent(group)
		if b.zone != nil && b.zone.Chassis == name && b.zone.Boot != "" {
			row = row.with(KeyBoot, b.zone.Boot)
		}
		out = append(out, row)
	}
	return out
}

// connect returns a router's port and the port of the switch that it is attached to. kind distinguishes the ports of a
// shard; the MAC address is derived from it.
func (b *Builder) connect(
	s *shard, kind, router, port, holder string, networks []string, group any,
) []Row {
	columns := map[string]any{"name": port, "mac": s.ID.PortMAC(b.cluster.ID, kind), "networks": networks}
	if group != nil {
		columns["ha_chassis_group"] = group
	}
	return []Row{
		s.row(RouterPort, columns, kind).withParent(router),
		s.row(SwitchPort, map[string]any{
			"name": kind + "-" + router, "type": "router", "addresses": []string{"router"},
			"options": map[string]string{"router-port": port}, "tag": (*int)(nil),
		}, kind).withParent(holder),
	}
}

// externalPortRows returns the port of a shard's router on the segment, the one that a gateway claims.
func (b *Builder) externalPortRows(s *shard, group Ref) []Row {
	rows := b.connect(s, "ext", RouterName(s.ID), externalPort(s.ID), switchName(s.ID.Domain), texts(s.Anchors), group)
	// Announce only the anchor: gratuitous ARP for every VIP takes 20 s with 2,000 VIPs.
	rows[1].Columns["options"] = map[string]string{
		"router-port": externalPort(s.ID), "nat-addresses": "router", "exclude-lb-vips-from-garp": "true",
	}
	return rows
}

// routeRows returns the routes of a shard's router: aliases by inward, at most one address per family, and everything
// else by the next hops of the segment.
func (b *Builder) routeRows(s *shard, inward []netip.Addr) []Row {
	var out []Row
	route := func(prefix, nexthop string, port *string, bfd any) {
		out = append(out, s.row(StaticRoute, map[string]any{
			"ip_prefix": prefix, "nexthop": nexthop, "output_port": port, "bfd": bfd,
		}, "route", prefix).withParent(RouterName(s.ID)))
	}
	for _, hop := range inward {
		route(aliasesOf(world.FamilyOf(hop)).prefix.String(), hop.String(), nil, (*string)(nil))
	}
	ext := externalPort(s.ID)
	session := false
	for _, anchor := range s.Anchors {
		gateway := s.gateway(anchor.Addr())
		if !gateway.IsValid() {
			continue
		}
		dummy, all := dummyRoute4, "0.0.0.0/0"
		if world.FamilyOf(gateway) == world.IPv6 {
			dummy, all = dummyRoute6, "::/0"
		}
		route(all, gateway.String(), &ext, (*string)(nil))
		if session {
			continue // one session updates the switches' tables for both families
		}
		session = true
		millis, multiplier := bfdInterval(s.Handover), bfdMultiplier
		bfd := s.row(BFD, map[string]any{
			"logical_port": ext,
			"dst_ip":       gateway.String(),
			"min_tx":       &millis,
			"min_rx":       &millis,
			"detect_mult":  &multiplier,
		})
		out = append(out, bfd)
		route(dummy, gateway.String(), &ext, Ref{bfd.Table, bfd.ID})
	}
	return out
}

// forwardingRows returns the policies by which a shard's router does not forward what comes from the segment to its
// next hop. That could send it back, until the TTL is used up: an address that is not in the subnet of the anchor, on a
// port that no Service has, is behind the next hop for the router, and behind the router for the next hop. Policies are
// evaluated after load balancers.
//
// In the subnet of the anchor are addresses that a host translates (egress.go). The router's own replies have its
// address and a new TTL; a host could use this address as well, but what it sends passes three times at most.
func (b *Builder) forwardingRows(s *shard) []Row {
	ports := strconv.Quote(externalPort(s.ID))
	if b.hasInPort(s) {
		ports += ", " + strconv.Quote(inPort(s.ID))
	}
	var allowed []string
	for _, anchor := range s.Anchors {
		f, own := world.FamilyOf(anchor.Addr()), anchor.Addr().String()
		if f == world.IPv6 {
			own += ", fe80::/10"
		}
		allowed = append(allowed, fmt.Sprintf("ip%d.dst == {%s, %s} || (ip%d.src == {%s} && ip.ttl == {253, 254, 255})",
			f, aliasesOf(f).prefix, anchor.Masked(), f, own))
	}
	policy := func(what string, priority int, match string) Row {
		return s.row(Policy, map[string]any{
			"priority": priority, "match": fmt.Sprintf("inport == {%s} && (%s)", ports, match), "action": what,
			"nexthops": []string{},
		}, "forward", what).withParent(RouterName(s.ID))
	}
	return []Row{
		policy("allow", policyPriority, strings.Join(allowed, " || ")),
		policy("drop", defaultDropPriority, "ip4 || ip6"),
	}
}

// gateway returns the next hop of the subnet that contains an anchor.
func (s *shard) gateway(anchor netip.Addr) netip.Addr {
	for _, subnet := range s.domain.Subnets {
		if subnet.Prefix.Contains(anchor) && subnet.Gateway.IsValid() {
			return subnet.Gateway
		}
	}
	return netip.Addr{}
}
