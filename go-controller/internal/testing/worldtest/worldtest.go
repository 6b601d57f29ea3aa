// SPDX-License-Identifier: Apache-2.0

// Package worldtest builds snapshots for tests: small ones with many conflicts from fuzzed bytes, and large regular
// ones for benchmarks.
package worldtest

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Source is a stream of choices. An empty Source always selects the first option.
type Source []byte

// N returns a number from 0 to n-1.
func (s *Source) N(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % n
}

// chance returns true in about one of n calls, and false for an empty source and n > 1.
func (s *Source) chance(n int) bool { return s.N(n) == n-1 }

// span is the number of addresses per family in a random snapshot. The IPv4 addresses surround 10.0.0.255, so that
// AvoidBuggyIPs excludes some of them.
const span = 40

// addr returns one of the span addresses of a family.
func (s *Source) addr(f world.Family) netip.Addr {
	n := byte(s.N(span))
	if f == world.IPv4 {
		first := int(n) + 236
		return netip.AddrFrom4([4]byte{10, 0, byte(first / 256), byte(first % 256)})
	}
	return netip.AddrFrom16([16]byte{0xfd, 15: n})
}

func (s *Source) family() world.Family {
	if s.N(2) == 0 {
		return world.IPv4
	}
	return world.IPv6
}

func (s *Source) ranges(n int) []netipx.IPRange {
	var list []netipx.IPRange
	for range n {
		f := s.family()
		a, b := s.addr(f), s.addr(f)
		if b.Less(a) {
			a, b = b, a
		}
		list = append(list, netipx.IPRangeFrom(a, b))
	}
	return list
}

// now is the time in random snapshots. Leases are released within a few seconds of it.
var now = time.Unix(100, 0) //nolint:gochecknoglobals // a constant

func (s *Source) when() time.Time { return time.Unix(int64(s.N(4)), 0) }

// Random returns a small snapshot in which most ranges and addresses overlap.
func Random(s Source) *world.Snapshot {
	w := &world.Snapshot{Now: now, ShardStates: map[world.ShardID]world.ShardState{},
		Conflicts:       map[netip.Addr]world.Conflict{},
		Leaving:         map[netip.Addr]world.Key{},
		Granted:         map[world.Key][]netip.Addr{},
		HeldExternalIPs: map[world.Key][]netip.Addr{}, Bridges: map[string]world.Bridges{}}
	for i := range s.N(4) + 1 {
		w.Pools = append(w.Pools, s.pool(i))
	}
	for i := range s.N(4) {
		n := &world.Node{Name: fmt.Sprintf("n%d", i), Chassis: fmt.Sprintf("c%d", i)}
		if s.chance(2) {
			n.Addrs = []netip.Addr{s.addr(s.family())}
		}
		if s.chance(4) {
			n.NextHops = []netip.Addr{s.addr(s.family())}
		}
		if s.chance(5) {
			n.Draining = "label"
		}
		switch s.N(8) {
		case 7:
			n.Chassis = ""
		case 6:
			w.Bridges[n.Chassis] = world.Bridges{}
		}
		w.Nodes = append(w.Nodes, n)
	}
	for i := range s.N(3) {
		w.Domains = append(w.Domains, s.domain(i))
	}
	if s.chance(2) {
		w.ShardStates[world.ShardID{Domain: "d0", Index: s.N(3)}] = world.ShardState{Active: fmt.Sprintf("n%d", s.N(4)),
			Settled: s.N(2) == 0, Order: []string{fmt.Sprintf("n%d", s.N(4))}}
	}
	if s.chance(4) {
		w.Cluster.ClusterSubnets = []netip.Prefix{netip.PrefixFrom(s.addr(world.IPv4), 30).Masked()}
	}
	if s.chance(3) {
		w.Cluster.ServiceSubnets = append(w.Cluster.ServiceSubnets, netip.PrefixFrom(s.addr(world.IPv6), 127).Masked())
	}
	for range s.N(3) {
		w.Conflicts[s.addr(s.family())] = world.Conflict{MAC: "02:00:00:00:00:01", Node: "n0"}
	}
	for range s.N(2) {
		w.Leaving[s.addr(s.family())] = world.Key{Namespace: "ns", Name: "left"}
	}
	if s.chance(16) {
		w.Cluster.AutoAssignCIDRs = []string{"192.0.2.0/24"}
	}
	for i := range s.N(12) + 1 {
		svc := s.service(i)
		w.Services = append(w.Services, svc)
		if s.chance(4) {
			w.Granted[svc.Key] = []netip.Addr{s.addr(s.family())}
		}
	}
	for _, n := range w.Nodes {
		if len(n.Addrs) > 0 && s.chance(3) {
			n.Hosts = []world.Host{{Addr: n.Addrs[0], Masquerade: s.addr(world.FamilyOf(n.Addrs[0]))}}
		}
		if s.N(4) == 3 {
			n.Faults = map[string]world.Fault{[]string{"", world.EveryNetwork, "elsewhere"}[s.N(3)]: {Kind: world.FaultUplink,
				Message: "no carrier"}}
		}
	}
	for _, svc := range w.Services {
		s.own(w, svc)
	}
	for _, p := range w.Pools {
		p.ExternalIPs, p.SharedByCluster = s.N(2) == 0, s.chance(3)
	}
	if s.chance(12) {
		w.Cluster.ModeSetting.Mode = world.Modes()[s.N(len(world.Modes()))]
	}
	s.left(w)
	if s.chance(4) {
		w.EgressIPs = map[string][]netip.Addr{"e0": {s.addr(s.family())}}
	}
	return w
}

// left adds addresses in statuses that are not, not yet, or no longer what was decided.
func (s *Source) left(w *world.Snapshot) {
	if of := w.Services[s.N(len(w.Services))].Assigned; len(of) > 0 {
		w.LeavingShared = map[world.Key][]netip.Addr{{Namespace: "ns", Name: "shares"}: of}
	}
	if svc := w.Services[s.N(len(w.Services))]; s.chance(2) && len(svc.Assigned) == 0 {
		svc.Given = []netip.Addr{s.addr(s.family())}
	}
	if s.chance(3) {
		of := w.Services[s.N(len(w.Services))].Key
		w.Unsettled = map[world.Key][]netip.Addr{of: {s.addr(s.family())}}
	}
}

// own sets the addresses in the status of a Service that this controller assigned, the external IPs of the Service, and
// the external IPs that the Service already held.
func (s *Source) own(w *world.Snapshot, svc *world.Service) {
	svc.NamesClass = s.chance(3)
	for _, a := range svc.Assigned {
		if !s.chance(4) {
			svc.Given = append(svc.Given, a)
			if svc.RequestedPool != "" && s.chance(4) {
				svc.FromRequested = append(svc.FromRequested, a)
			}
		}
	}
	for range s.N(3) {
		a := s.addr(s.family())
		if slices.Contains(svc.ExternalIPs, a) {
			continue
		}
		svc.ExternalIPs = append(svc.ExternalIPs, a)
		switch s.N(4) {
		case 1:
			svc.HeldExternalIPs = append(svc.HeldExternalIPs, a)
		case 2:
			w.HeldExternalIPs[svc.Key] = append(w.HeldExternalIPs[svc.Key], a)
		}
	}
}

func (s *Source) pool(i int) *world.Pool {
	p := &world.Pool{
		Name: fmt.Sprintf("p%d", i), Created: s.when(), Ranges: s.ranges(s.N(3) + 1), Exclude: s.ranges(s.N(2)),
		AutoAssign: !s.chance(3), AvoidBuggyIPs: s.chance(3), Disabled: s.chance(5),
	}
	if s.chance(3) {
		p.Admission = s.admission()
	}
	if s.chance(3) {
		p.Quota = s.N(3) + 1
	}
	for range s.N(3) {
		holder := world.Key{Namespace: "ns", Name: fmt.Sprintf("s%02d", s.N(4))}
		p.Reservations = append(p.Reservations, world.Reservation{Service: holder,
			Addrs: []netip.Addr{s.addr(s.family()), s.addr(s.family())}})
	}
	if s.chance(2) {
		p.ReuseDelay = time.Duration(s.N(5)+1) * time.Second
	}
	for range s.N(5) {
		l := world.Lease{Addr: s.addr(s.family()), Service: world.Key{Namespace: "ns", Name: fmt.Sprintf("s%02d", s.N(6))}}
		if s.chance(2) {
			l.Released = now.Add(time.Duration(s.N(8)-5) * time.Second)
		}
		p.Leases = append(p.Leases, l)
	}
	if s.chance(8) {
		p.Problems = []string{"spec.addresses[0]: spoilt"}
	}
	return p
}

func (s *Source) admission() *world.Admission {
	a := &world.Admission{Priority: s.N(3), AnyNamespace: s.chance(2)}
	if s.chance(2) {
		a.Namespaces = []string{"ns"}
	}
	for range s.N(3) {
		selector := world.Selector{{Key: "app", Not: s.chance(2)}}
		if s.chance(2) {
			selector[0].Values = []string{"web"}
		}
		a.Services = append(a.Services, selector)
	}
	return a
}

func (s *Source) domain(i int) *world.Domain {
	f := s.family()
	small := netip.PrefixFrom(s.addr(f), s.addr(f).BitLen()-s.N(6)).Masked()
	d := &world.Domain{
		Name: fmt.Sprintf("d%d", i), Created: s.when(), Subnets: []world.Subnet{{Prefix: small}},
		Nodes: []string{"n0", "n1", "n2"}, Shards: s.N(5), MaxGateways: s.N(4), Preempt: s.chance(3),
	}
	for range s.N(3) {
		d.Preferred = append(d.Preferred, world.Preference{Weight: 1 + s.N(3), Nodes: []string{fmt.Sprintf("n%d", s.N(4))}})
	}
	if s.chance(2) {
		d.Subnets[0].Gateway = s.addr(f)
	}
	if !s.chance(3) {
		// These subnets contain all addresses.
		d.Subnets = append(d.Subnets, world.Subnet{Prefix: netip.MustParsePrefix("10.0.0.0/23")},
			world.Subnet{Prefix: netip.MustParsePrefix("fd00::/64")})
	}
	for p := range 4 {
		if s.chance(2) {
			d.Pools = append(d.Pools, fmt.Sprintf("p%d", p))
		}
	}
	if s.chance(8) {
		d.Problems = []string{"spec.vlan: spoilt"}
	}
	return d
}

func (s *Source) service(i int) *world.Service {
	svc := &world.Service{Key: world.Key{Namespace: "ns", Name: fmt.Sprintf("s%02d", i)}, Created: s.when()}
	if s.chance(3) {
		svc.Key.Namespace = "other"
	}
	if s.chance(2) {
		svc.Labels = map[string]string{"app": []string{"web", "db"}[s.N(2)]}
	}
	switch s.N(5) {
	case 0:
		svc.Families = []world.Family{world.IPv4}
	case 1:
		svc.Families = []world.Family{world.IPv6}
	default:
		svc.Families = []world.Family{world.IPv4, world.IPv6}
		svc.FamilyPolicy = world.PreferDualStack
		if s.chance(2) {
			svc.FamilyPolicy = world.RequireDualStack
		}
	}
	for range s.N(3) {
		svc.Assigned = append(svc.Assigned, s.addr(s.family()))
	}
	if s.chance(20) {
		svc.AssignedHosts = []string{"lb.example.org"}
	}
	if s.chance(3) {
		svc.Requested = append(svc.Requested, s.addr(s.family()))
	}
	if s.chance(6) {
		svc.Requested = append(svc.Requested, s.addr(s.family()))
	}
	if s.chance(5) {
		svc.RequestedPool = fmt.Sprintf("p%d", s.N(5))
	}
	if s.chance(12) {
		svc.Problems = []string{"spec.loadBalancerIP: spoilt"}
	}
	svc.Ports = []world.Port{{Protocol: world.TCP, Port: 80}, {Name: "dns", Protocol: world.UDP, Port: 53}}[:s.N(2)+1]
	svc.Ports = svc.Ports[s.N(len(svc.Ports)):]
	if s.chance(2) {
		svc.SharingKey = []string{"a", "b"}[s.N(2)]
		svc.LocalPolicy = s.chance(3)
		svc.Selector = map[string]string{"app": []string{"web", "db"}[s.N(2)]}
	}
	for range s.N(3) {
		svc.Slices = append(svc.Slices, s.slice(s.family()))
	}
	return svc
}

// slice returns a slice whose endpoints are from a few dozen addresses, so that Services share some.
func (s *Source) slice(f world.Family) *world.Slice {
	slice := &world.Slice{Family: f, Ports: []world.Port{{Protocol: world.TCP, Port: uint16(8080 + s.N(2))},
		{Name: "dns", Protocol: world.UDP, Port: 8080}}}
	for range s.N(3) {
		e := world.Endpoint{Addr: s.addr(f), Node: fmt.Sprintf("n%d", s.N(3)), Ready: !s.chance(3)}
		e.Serving = e.Ready || s.chance(2)
		e.Terminating = !e.Ready && s.chance(2)
		slice.Endpoints = append(slice.Endpoints, e)
	}
	return slice
}

// Large returns a snapshot of IPv4 Services, each with its own endpoints, one pool of 10.0.0.0/16 and fd00::/64, and
// one domain of eight shards on ten nodes.
func Large(services, endpoints int) *world.Snapshot {
	start := time.Unix(1_700_000_000, 0)
	w := &world.Snapshot{
		Pools: []*world.Pool{{
			Name: "large", Created: start, AutoAssign: true, AvoidBuggyIPs: true,
			Ranges: []netipx.IPRange{netipx.MustParseIPRange("10.0.0.0-10.0.255.255"),
				netipx.RangeOfPrefix(netip.MustParsePrefix("fd00::/64"))},
		}},
		Domains: []*world.Domain{{
			Name: "segment", Created: start, Pools: []string{"large"}, Shards: 8, MaxGateways: 3,
			Subnets: []world.Subnet{{Prefix: netip.MustParsePrefix("10.0.0.0/16")},
				{Prefix: netip.MustParsePrefix("fd00::/64")}},
		}},
	}
	for i := range 10 {
		name := fmt.Sprintf("node-%d", i)
		w.Nodes = append(w.Nodes, &world.Node{Name: name, Chassis: "chassis-" + name,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 200, byte(i)})}})
		w.Domains[0].Nodes = append(w.Domains[0].Nodes, name)
	}
	for i := range services {
		s := &world.Service{
			Key:     world.Key{Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("service-%d", i)},
			Created: start.Add(time.Duration(i/10) * time.Second), Families: []world.Family{world.IPv4},
			Ports: []world.Port{{Name: "http", Protocol: world.TCP, Port: 80}},
		}
		if endpoints > 0 {
			slice := &world.Slice{Family: world.IPv4, Ports: []world.Port{{Name: "http", Protocol: world.TCP, Port: 8080}}}
			for j := range endpoints {
				n := i*endpoints + (j*7)%endpoints
				slice.Endpoints = append(slice.Endpoints, world.Endpoint{
					Addr: netip.AddrFrom4([4]byte{172, byte(n >> 16), byte(n >> 8), byte(n)}), Node: w.Nodes[n%10].Name, Ready: true,
					Serving: true,
				})
			}
			s.Slices = []*world.Slice{slice}
		}
		w.Services = append(w.Services, s)
	}
	return w
}

// Wide returns a Service with many ports. Its endpoints are in one slice, have addresses in 10.244.0.0/16 and are
// distributed round-robin over the nodes.
func Wide(ports, endpoints, nodes int) *world.Service {
	s := &world.Service{Key: world.Key{Namespace: "media", Name: "rtp"}, Families: []world.Family{world.IPv4}}
	slice := &world.Slice{Family: world.IPv4}
	for i := range ports {
		p := world.Port{Name: fmt.Sprintf("p%d", i), Protocol: world.UDP, Port: uint16(10_000 + i)} //nolint:gosec // a few thousand
		s.Ports, slice.Ports = append(s.Ports, p), append(slice.Ports, p)
	}
	for i := range endpoints {
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{
			Addr: netip.AddrFrom4([4]byte{10, 244, byte(i % nodes), byte(10 + i/nodes)}), Node: fmt.Sprintf("n%d", i%nodes),
			Ready: true, Serving: true,
		})
	}
	s.Slices = []*world.Slice{slice}
	return s
}
