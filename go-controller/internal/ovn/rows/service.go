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

// Service returns the load balancers of a Service, one a VIP and protocol, another where it
// has draining backends, and the ACLs before them. vips returns the vips column of the row
// with that id as it is, nil if there is none; backends keep the slots that they have there.
func (g *Ground) Service(p *plan.Service, vips func(id string) map[string]string) ([]Row, error) {
	var out []Row
	for _, v := range p.VIPs {
		if slices.Contains(g.numberless, v.Shard) {
			continue // the Service's other addresses are served
		}
		if _, ok := g.shards[v.Shard]; !ok {
			return nil, fmt.Errorf("address %s: shard %s has no router", v.Addr, ShardName(v.Shard))
		}
		for _, protocol := range protocols() {
			if row, ok := g.balancer(p, v, protocol, vips); ok {
				out = append(out, row.in(RouterName(v.Shard)))
			}
			if row, ok := g.draining(p, v, protocol); ok {
				out = append(out, row.in(RouterName(v.Shard)))
			}
		}
	}
	return append(out, g.Sources(p)...), nil
}

// balancer is the row of one address and protocol of a Service; false if nothing listens.
func (g *Ground) balancer(
	p *plan.Service, v plan.VIP, protocol world.Protocol, vips func(string) map[string]string,
) (Row, bool) {
	vip, shard := v.Addr, g.shards[v.Shard]
	proto := strings.ToLower(string(protocol))
	fields, options := g.selection(p.ClientAffinity, world.FamilyOf(vip))
	if protocol == world.UDP {
		// Else a flow to a backend that is gone keeps its entry alive, and is lost, for as long as the client goes on asking.
		// Connections over TCP end by themselves, and may go on with a backend that takes no new ones. It takes an OVN that
		// tells ovn-controller of routers' load balancers (Southbound column lr_datapath_group); 23.03 ignores it.
		options["ct_flush"] = "true"
	}
	row := owned(LoadBalancer, OwnerService, p.Key.String(), map[string]any{
		"name":             fmt.Sprintf("slb-%s-%s-%s", p.Key, vip, proto),
		"protocol":         &proto,
		"selection_fields": fields,
		"options":          options,
	}, vip.String(), proto).with(KeyService, p.Key.String())
	have := vips(row.ID)
	want := map[string]string{}
	for _, l := range p.At(vip) {
		if l.Protocol != protocol {
			continue
		}
		key := netip.AddrPortFrom(l.VIP, l.Port).String()
		want[key] = strings.Join(Slots(split(have[key]), g.targets(shard, l.Backends)), ",")
	}
	row.Columns["vips"] = want
	return row, len(want) > 0
}

// draining is the row of the backends of one address and protocol that take no new
// connections; false if there are none.
//
// A router turns the source of a reply back only if a load balancer of it has the backend
// (ovn-northd(8), egress table "UNDNAT"); whether the connection is known decides conntrack,
// and what goes to the VIP needs no backend. So each draining backend is the only one of a
// VIP that no client asks: of itself. That is an alias, which the router accepts from no
// client and OVN answers no ARP for (ADR 7), and it changes nothing in a packet that is for it.
func (g *Ground) draining(p *plan.Service, v plan.VIP, protocol world.Protocol) (Row, bool) {
	proto, vips := strings.ToLower(string(protocol)), map[string]string{}
	for _, l := range p.At(v.Addr) {
		if l.Protocol != protocol {
			continue
		}
		for _, to := range g.targets(g.shards[v.Shard], l.Draining) {
			vips[to] = to
		}
	}
	return owned(LoadBalancer, OwnerService, p.Key.String(), map[string]any{
		"name":     fmt.Sprintf("slb-%s-%s-%s-draining", p.Key, v.Addr, proto),
		"protocol": &proto,
		"vips":     vips,
		"options":  map[string]string{"neighbor_responder": "none"},
	}, v.Addr.String(), proto, "draining").with(KeyService, p.Key.String()), len(vips) > 0
}

// selection chooses how connections are spread: by client, or by connection. It must not
// depend on state of the active gateway, so that a connection keeps its backend through a
// failover: options:affinity_timeout does, and on OVN 23.03 it also lost connections. So
// there is no affinity where OVN can't hash IPv6 addresses.
func (g *Ground) selection(affinity bool, f world.Family) (fields []string, options map[string]string) {
	// A VIP outside the subnets of the router's port is answered for only with "all".
	options = map[string]string{"reject": "true", "neighbor_responder": "all"}
	fields = []string{"ip_dst", "ip_src"}
	if f == world.IPv6 && g.facts.HashIPv6 {
		fields = []string{"ipv6_dst", "ipv6_src"}
	}
	if affinity && (f == world.IPv4 || g.facts.HashIPv6) {
		return fields, options
	}
	return append(fields, "tp_dst", "tp_src"), options
}

func split(slots string) []string {
	if slots == "" {
		return nil
	}
	return strings.Split(slots, ",")
}

// targets are where a shard sends to: backends' aliases. What has none would not find its way
// back, and must not be taken for one either: anybody can write an alias into a slice.
func (g *Ground) targets(s *shard, backends []plan.Backend) []string {
	out := make([]string, 0, len(backends))
	for _, b := range backends {
		alias, ok := g.alias(s.ordinal, b.Addr.Addr())
		if b.Host {
			alias, ok = g.hostAlias(s.ordinal, b.Node, world.FamilyOf(b.Addr.Addr()))
		}
		if ok {
			out = append(out, netip.AddrPortFrom(alias, b.Addr.Port()).String())
		}
	}
	return out
}
