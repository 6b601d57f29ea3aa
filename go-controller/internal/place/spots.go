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

// Spots says where each address of each Service is.
type Spots struct {
	// Services has an entry for each Service with an address, its spots in the order of
	// the addresses.
	Services map[world.Key][]Spot
	// lines are the VIPs of each shard, by family and with their subnets' lengths, those of
	// the oldest Services first: the first of a line is an anchor.
	lines  map[line][]netip.Prefix
	layout *Layout
}

type line struct {
	shard  world.ShardID
	family world.Family
}

// Spot is where an address is. With a Reason nothing carries it, and Shard is not set.
type Spot struct {
	Addr    netip.Addr
	Shard   world.ShardID
	Reason  Reason
	Message string
}

// Elsewhere tells whether no L2Domain has to do with the address now: if it is announced, then by BGP.
func (s *Spot) Elsewhere() bool {
	switch s.Reason {
	case ReasonNoDomain, ReasonAddressOutsideSubnets, ReasonSwitchedOff, ReasonUnsupported:
		return true
	default:
		return false
	}
}

// Hold says why an address is not carried for now although its domain could.
type Hold struct {
	Reason  Reason
	Message string
}

// VIPs returns those addresses of a Service that are carried.
func (s *Spots) VIPs(k world.Key) []plan.VIP {
	var vips []plan.VIP
	for _, spot := range s.Services[k] {
		if spot.Reason == "" {
			vips = append(vips, plan.VIP{Addr: spot.Addr, Shard: spot.Shard})
		}
	}
	return vips
}

// Spots finds the shard of each address that the allocation gave and that is not held.
func (l *Layout) Spots(w *world.Snapshot, a *ipam.Allocation, holds map[netip.Addr]Hold) *Spots {
	s := &Spots{
		Services: make(map[world.Key][]Spot, len(w.Services)),
		lines:    make(map[line][]netip.Prefix),
		layout:   l,
	}
	for _, svc := range a.InOrder() {
		if addrs := a.Services[svc.Key].VIPs(); len(addrs) > 0 {
			s.Services[svc.Key] = s.place(a, addrs, holds)
		}
	}
	return s
}

// place finds the spots of addresses that have none yet.
func (s *Spots) place(a *ipam.Allocation, addrs []netip.Addr, holds map[netip.Addr]Hold) []Spot {
	spots := make([]Spot, len(addrs))
	for i, addr := range addrs {
		d, reason, message := s.layout.carrier(a.PoolOf(addr), addr)
		if h, held := holds[addr]; held && reason == "" {
			reason, message = h.Reason, h.Message
		}
		spots[i] = Spot{Addr: addr, Reason: reason, Message: message}
		if reason == "" {
			spots[i].Shard = d.shard(addr)
			subnet, _ := d.subnet(addr)
			l := spots[i].line()
			s.lines[l] = append(s.lines[l], netip.PrefixFrom(addr, subnet.Bits()))
		}
	}
	return spots
}

func (s *Spot) line() line { return line{s.Shard, world.FamilyOf(s.Addr)} }

// anchors are the VIPs that a shard's router has as its own addresses, at most one a family.
func (s *Spots) anchors(id world.ShardID) []netip.Prefix {
	var anchors []netip.Prefix
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		if l := s.lines[line{id, f}]; len(l) > 0 {
			anchors = append(anchors, l[0])
		}
	}
	return anchors
}

// carrier returns the domain that carries an address of a pool, or why none does.
func (l *Layout) carrier(pool string, a netip.Addr) (*Domain, Reason, string) {
	d := l.domain(pool, a)
	if d == nil && pool == "" {
		return nil, ReasonNoDomain, fmt.Sprintf("address %s is in no pool and in no subnet of an L2Domain", a)
	}
	if reason, message := d.idle(pool); reason != "" {
		return nil, reason, message
	}
	if _, ok := d.subnet(a); !ok {
		subnets := make([]string, len(d.Spec.Subnets))
		for i, s := range d.Spec.Subnets {
			subnets[i] = s.Prefix.String()
		}
		return nil, ReasonAddressOutsideSubnets, fmt.Sprintf("address %s is in none of the subnets of L2Domain %q: %s", a, d.Spec.Name, strings.Join(subnets, ", "))
	}
	return d, "", ""
}

// Idle says why no address of a pool can be carried; no reason if one can.
func (l *Layout) Idle(pool string) (Reason, string) { return l.byPool[pool].idle(pool) }

// idle says why a domain, nil for none, carries nothing of a pool.
func (d *Domain) idle(pool string) (Reason, string) {
	switch {
	case d == nil:
		return ReasonNoDomain, fmt.Sprintf("no L2Domain has pool %q", pool)
	case len(d.Spec.Problems) > 0:
		return ReasonDomainNotReady, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, strings.Join(d.Spec.Problems, "; "))
	case d.Off != "":
		return ReasonSwitchedOff, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.Off)
	case d.Unserved != "":
		return ReasonUnsupported, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.Unserved)
	case len(d.Shards) == 0:
		return ReasonNoGateway, fmt.Sprintf("L2Domain %q: %s", d.Spec.Name, d.NoGateway)
	}
	return "", ""
}

// Fabric returns the ground for the Services: all domains without problems of their own.
func (l *Layout) Fabric(w *world.Snapshot, s *Spots) *plan.Fabric {
	f := &plan.Fabric{Cluster: w.Cluster}
	for _, n := range w.Nodes {
		if n.Chassis != "" {
			f.Nodes = append(f.Nodes, plan.Node{Name: n.Name, Chassis: n.Chassis, Hosts: n.Hosts})
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
			Residents:        d.residents,
		}
		for _, shard := range d.Shards {
			pd.Shards = append(pd.Shards, plan.Shard{
				ID: shard.ID, Gateways: shard.Gateways, Anchors: s.anchors(shard.ID),
				Handover: handover(shard.Gateways[0].Chassis, w.Carriers[shard.ID]),
			})
		}
		f.Domains = append(f.Domains, pd)
	}
	return f
}
