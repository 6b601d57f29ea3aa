// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Service returns the load balancers of a Service, one per VIP and protocol, plus another one if it has draining
// backends, and the Service's ACLs. vips returns the existing vips column of the row with that ID, or nil if there is
// no such row. Backends keep the slots that they have there. A row that is there stays, with empty vips, as long as the
// Service has the address: ovn-northd handles a changed load balancer incrementally, but computes everything again when
// one leaves its router (northd_handle_lb_data_changes in northd/northd.c).
func (b *Builder) Service(p *plan.Service, vips func(id string) map[string]string) ([]Row, error) {
	var out []Row
	for _, v := range p.VIPs {
		if slices.Contains(b.unnumbered, v.Shard) {
			continue // the Service's other addresses are still served
		}
		if _, ok := b.shards[v.Shard]; !ok {
			return nil, fmt.Errorf("address %s: shard %s has no router", v.Addr, v.Shard.Name())
		}
		if !b.shards[v.Shard].local {
			continue // gateways have the load balancers
		}
		for _, protocol := range protocols() {
			if row, ok := b.balancer(p, v, protocol, vips); ok {
				out = append(out, row.withParent(RouterName(v.Shard)))
			}
			if row, ok := b.draining(p, v, protocol, vips); ok {
				out = append(out, row.withParent(RouterName(v.Shard)))
			}
		}
	}
	return append(out, b.ACLs(p)...), nil
}

// balancer returns the row of one address and protocol of a Service, or false if it has no listener.
func (b *Builder) balancer(
	p *plan.Service, v plan.VIP, protocol world.Protocol, vips func(string) map[string]string,
) (Row, bool) {
	vip, shard := v.Addr, b.shards[v.Shard]
	proto := strings.ToLower(string(protocol))
	fields, options := b.selection(p, world.FamilyOf(vip))
	if protocol == world.UDP {
		// Otherwise the packets of a client keep the conntrack entry to a removed backend alive, and are lost, for as
		// long as the client keeps sending. TCP connections end by themselves, and may continue with a backend that
		// accepts no new ones. The option needs an OVN that informs ovn-controller of routers' load balancers
		// (southbound column lr_datapath_group); 23.03 ignores it.
		options["ct_flush"] = "true"
	}
	row := owned(LoadBalancer, OwnerService, p.Key.String(), map[string]any{
		"name":             fmt.Sprintf("slb-%s-%s-%s", p.Key, vip, proto),
		"protocol":         &proto,
		"selection_fields": fields,
		"options":          options,
	}, vip.String(), proto).with(KeyService, p.Key.String())
	have := vips(row.ID)
	want, choice := map[string]string{}, false
	for _, l := range p.ListenersFor(vip) {
		if l.Protocol != protocol {
			continue
		}
		key := netip.AddrPortFrom(l.VIP, l.Port).String()
		slots := b.targets(shard, l.Backends)
		if b.zone == nil { // in a zone, the plan has the slots
			slots = Slots(split(have[key]), slots)
		}
		want[key] = strings.Join(slots, ",")
		choice = choice || slices.ContainsFunc(slots, func(to string) bool { return to != slots[0] })
	}
	if !choice {
		row.Columns["selection_fields"] = oneBackend()
	}
	row.Columns["vips"] = want
	return row, len(want) > 0 || have != nil
}

// draining returns the row of the backends of one address and protocol that accept no new connections, or false if
// there are none.
//
// A router translates the source of a reply back only if one of its load balancers contains the backend
// (ovn-northd(8), egress table "UNDNAT"). conntrack decides whether the connection is known, and packets to the VIP
// need no backend. Therefore each draining backend is the only backend of a VIP that no client uses, namely its own
// address. That address is an alias, which the router accepts from no client and for which OVN does not reply to ARP
// (ADR 7). The load balancer does not change packets to the alias.
func (b *Builder) draining(
	p *plan.Service, v plan.VIP, protocol world.Protocol, vips func(string) map[string]string,
) (Row, bool) {
	proto, want := strings.ToLower(string(protocol)), map[string]string{}
	for _, l := range p.ListenersFor(v.Addr) {
		if l.Protocol != protocol {
			continue
		}
		for _, to := range b.targets(b.shards[v.Shard], l.Draining) {
			want[to] = to
		}
	}
	row := owned(LoadBalancer, OwnerService, p.Key.String(), map[string]any{
		"name":     fmt.Sprintf("slb-%s-%s-%s-draining", p.Key, v.Addr, proto),
		"protocol": &proto,
		"vips":     want,
		"options":  map[string]string{"neighbor_responder": "none"},
	}, v.Addr.String(), proto, "draining").with(KeyService, p.Key.String())
	return row, len(want) > 0 || vips(row.ID) != nil
}

// selection returns the fields by which connections are distributed: per client or per connection. The distribution
// must not depend on state of the active gateway, so that a connection keeps its backend through a failover.
// options:affinity_timeout depends on such state, and on OVN 23.03 it also lost connections. Therefore there is no
// affinity if OVN can't hash IPv6 addresses.
//
// The price is an upcall and a megaflow of the active gateway for each value of the fields, so for each connection. A
// row in which no port has more than one backend does not pay it (oneBackend). Nor does a Service whose connections may
// end: without fields the datapath selects, by a hash of its own that differs between gateways.
func (b *Builder) selection(p *plan.Service, f world.Family) (fields []string, options map[string]string) {
	// Only "all" makes the router reply for a VIP outside the subnets of its port.
	options = map[string]string{"reject": "true", "neighbor_responder": "all"}
	fields = []string{"ip_dst", "ip_src"}
	if f == world.IPv6 && b.facts.HashIPv6 {
		fields = []string{"ipv6_dst", "ipv6_src"}
	}
	if p.SessionAffinity && (f == world.IPv4 || b.facts.HashIPv6) {
		return fields, options
	}
	if p.ConnectionsMayEnd {
		return []string{}, options
	}
	return append(fields, "tp_dst", "tp_src"), options
}

// oneBackend returns the selection fields of load balancers whose ports have one backend each, so that the result does
// not depend on the fields. All packets to an address have the same value and need one megaflow. Without fields, each
// new connection is recirculated once more, and the userspace datapath drops a packet on its eighth pass
// (MAX_RECIRC_DEPTH). That limit was exceeded where a gateway was a backend itself.
func oneBackend() []string { return []string{"ip_dst"} }

func split(slots string) []string {
	if slots == "" {
		return nil
	}
	return strings.Split(slots, ",")
}

// targets returns the destinations of a shard, which are the aliases of backends. A backend without an alias is
// omitted because its replies would not return. Its address must not be mistaken for an alias either: any user can
// write an alias into an EndpointSlice.
func (b *Builder) targets(s *shard, backends []plan.Backend) []string {
	out := make([]string, 0, len(backends))
	for _, backend := range backends {
		alias, ok := b.alias(s.ordinal, backend.Addr.Addr())
		if backend.HostNetwork {
			alias, ok = b.hostAlias(s.ordinal, backend.Node, world.FamilyOf(backend.Addr.Addr()))
		}
		if ok {
			out = append(out, netip.AddrPortFrom(alias, backend.Addr.Port()).String())
		}
	}
	return out
}
