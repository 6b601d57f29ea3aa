// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Placements has the placement of each address of each Service.
type Placements struct {
	// Services has an entry for each Service with an address. Its placements are in the order of the addresses.
	Services    map[world.Key][]Placement
	vipsByShard map[shardFamily]vips
	layout      *Layout
}

type shardFamily struct {
	shard  world.ShardID
	family world.Family
}

// Placement is the shard of an address. If Reason is set, the address is not announced, and Shard is not set.
type Placement struct {
	Addr    netip.Addr
	Shard   world.ShardID
	Reason  Reason
	Message string
}

// OutsideLayer2 reports whether no L2Domain is responsible for the address now. If it is announced, it is announced by
// BGP.
func (p *Placement) OutsideLayer2() bool {
	switch p.Reason {
	case ReasonNoDomain, ReasonAddressOutsideSubnets, ReasonDisabledByMode, ReasonUnsupported, ReasonOtherServiceProxy,
		ReasonServiceNotSelected:
		return true
	default:
		return false
	}
}

// Withheld is why an address is not announced now although its domain could announce it.
type Withheld struct {
	Reason  Reason
	Message string
}

// VIPs returns the addresses of a Service that have a shard.
func (ps *Placements) VIPs(k world.Key) []plan.VIP {
	var vips []plan.VIP
	for _, placement := range ps.Services[k] {
		if placement.Reason == "" {
			vips = append(vips, plan.VIP{Addr: placement.Addr, Shard: placement.Shard})
		}
	}
	return vips
}

// Place returns the shard of each allocated address that is not withheld.
func (l *Layout) Place(w *world.Snapshot, a *ipam.Allocation, withheld map[netip.Addr]Withheld) *Placements {
	s := &Placements{
		Services:    make(map[world.Key][]Placement, len(w.Services)),
		vipsByShard: make(map[shardFamily]vips),
		layout:      l,
	}
	for _, svc := range a.InOrder() {
		if addrs := a.Services[svc.Key].VIPs(); len(addrs) > 0 {
			s.Services[svc.Key] = s.add(w, svc, a, addrs, withheld)
		}
	}
	return s
}

// add places addresses of a Service that have no placement yet.
func (ps *Placements) add(w *world.Snapshot, svc *world.Service, a *ipam.Allocation, addrs []netip.Addr,
	withheld map[netip.Addr]Withheld) []Placement {
	placements := make([]Placement, len(addrs))
	for i, addr := range addrs {
		if svc.OtherProxy() {
			placements[i] = Placement{Addr: addr, Reason: ReasonOtherServiceProxy, Message: OtherServiceProxy(svc)}
			continue
		}
		d, reason, message := ps.layout.domainFor(svc, a.PoolOf(addr), addr)
		// The label of a namespace withdraws no address: each node of OVN-Kubernetes may write it.
		if reason == "" && ps.layout.primaryNetworks[svc.Key.Namespace] && !w.Announced[addr] && !w.LastAnnounced[addr] {
			reason, message = ReasonUnsupported, fmt.Sprintf("L2Domain %q: the pods of namespace %q have a primary "+
				"user-defined network, where no L2Domain reaches them", d.Spec.Name, svc.Key.Namespace)
		}
		if why, is := withheld[addr]; is && reason == "" {
			reason, message = why.Reason, why.Message
		}
		placements[i] = Placement{Addr: addr, Reason: reason, Message: message}
		if reason == "" {
			placements[i].Shard = d.shard(addr)
			subnet, _ := d.subnet(addr)
			l := placements[i].shardFamily()
			ps.vipsByShard[l] = ps.vipsByShard[l].with(netip.PrefixFrom(addr, subnet.Prefix.Bits()), subnet.Gateway.IsValid())
		}
	}
	return placements
}

// OtherServiceProxy returns why a Service that another service proxy serves is not announced.
func OtherServiceProxy(s *world.Service) string {
	return fmt.Sprintf("label %s: %q leaves the Service to another service proxy, and OVN-Kubernetes and kube-proxy "+
		"ignore it, so neither layer 2 nor BGP announces its addresses, which it keeps", world.LabelServiceProxyName,
		s.Labels[world.LabelServiceProxyName])
}

func (p *Placement) shardFamily() shardFamily { return shardFamily{p.Shard, world.FamilyOf(p.Addr)} }

// anchors returns the VIPs that a shard's router has as its own addresses, at most one per family.
func (ps *Placements) anchors(w *world.Snapshot, id world.ShardID) []netip.Prefix {
	var anchors []netip.Prefix
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		if anchor, ok := ps.vipsByShard[shardFamily{id, f}].anchor(w.Anchors[id]); ok {
			anchors = append(anchors, anchor)
		}
	}
	return anchors
}

// domainFor returns the domain that serves a Service's address of a pool, or why none does.
func (l *Layout) domainFor(s *world.Service, pool string, a netip.Addr) (*Domain, Reason, string) {
	d := l.domain(pool, a)
	if d == nil && pool == "" {
		return nil, ReasonNoDomain, "it is in no pool and in no subnet of an L2Domain"
	}
	if d != nil && !d.selects(s.Labels) {
		return nil, ReasonServiceNotSelected, d.notSelected()
	}
	if reason, message := d.idle(pool); reason != "" {
		return nil, reason, message
	}
	if _, ok := d.subnet(a); !ok {
		return nil, ReasonAddressOutsideSubnets, fmt.Sprintf("address %s is in none of the subnets of L2Domain %q: %s", a,
			d.Spec.Name, d.subnets())
	}
	// A Service may have had the address before the domain, or its gateway, was known.
	if slices.ContainsFunc(d.Spec.Subnets, func(s world.Subnet) bool { return s.Gateway == a }) {
		return nil, ReasonAddressConflict, fmt.Sprintf("it is the next hop of L2Domain %q (spec.subnets[].gateway)",
			d.Spec.Name)
	}
	return d, "", ""
}

// selects reports whether the domain announces Services with these labels, as far as its specification is valid.
func (d *Domain) selects(labels map[string]string) bool {
	return len(d.Spec.Problems) > 0 || world.Selects(d.Spec.Services, labels)
}

func (d *Domain) notSelected() string {
	return fmt.Sprintf("L2Domain %q does not select the Service by its labels (spec.serviceSelectors)", d.Spec.Name)
}

// Idle returns why no address of a pool can be announced, or no reason if addresses can.
func (l *Layout) Idle(pool string) (Reason, string) { return l.byPool[pool].idle(pool) }

// idle returns why a domain serves no address of a pool. A nil domain stands for no domain.
func (d *Domain) idle(pool string) (Reason, string) {
	switch {
	case d == nil:
		return ReasonNoDomain, fmt.Sprintf("no L2Domain has pool %q", pool)
	case len(d.Spec.Problems) > 0:
		return ReasonDomainNotReady, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, strings.Join(d.Spec.Problems, "; "))
	case d.DisabledReason != "":
		return ReasonDisabledByMode, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.DisabledReason)
	case d.Unserved != "":
		return ReasonUnsupported, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.Unserved)
	case len(d.Shards) == 0:
		return ReasonNoGateway, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.NoGateway)
	}
	return "", ""
}

// Topology returns the base topology for the Services: all domains without problems of their own.
func (l *Layout) Topology(w *world.Snapshot, s *Placements) *plan.Topology {
	f := &plan.Topology{Cluster: w.Cluster}
	ordinals, hostsOf := l.ordinals(s, w), world.HostsOf(w.Nodes)
	for _, n := range w.Nodes {
		if n.Chassis != "" {
			f.Nodes = append(f.Nodes, plan.Node{Name: n.Name, Chassis: n.Chassis, Hosts: hostsOf(n)})
		}
	}
	slices.SortFunc(f.Nodes, func(a, b plan.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range l.Domains {
		if len(d.Spec.Problems) > 0 {
			continue
		}
		pd := plan.Domain{
			Name:             d.Spec.Name,
			PhysicalNetwork:  d.Spec.PhysicalNetwork,
			VLAN:             d.Spec.VLAN,
			Subnets:          d.Spec.Subnets,
			Detect:           d.Spec.Detect,
			DetectMultiplier: d.Spec.DetectMultiplier,
			Announce:         d.Spec.Announce,
			Residents:        d.residents,
		}
		for _, shard := range d.Shards {
			pd.Shards = append(pd.Shards, plan.Shard{
				ID: shard.ID, Gateways: shard.Gateways, Anchors: s.anchors(w, shard.ID),
				Handover: Handover(shard.Gateways[0].Node, w.ShardStates[shard.ID]), Ordinal: ordinals[shard.ID],
			})
		}
		f.Domains = append(f.Domains, pd)
	}
	return f
}
