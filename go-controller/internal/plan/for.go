// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// For returns the plan to serve the Service on these VIPs, or nil if there are none.
func For(s *world.Service, vips []VIP, reachability *Reachability) *Service {
	if len(vips) == 0 {
		return nil
	}
	p := &Service{
		Key:             s.Key,
		VIPs:            slices.Clone(vips),
		SessionAffinity: s.SessionAffinity,
		SourceRanges:    SourceRanges(s.SourceRanges),
	}
	slices.SortFunc(p.VIPs, func(a, b VIP) int { return a.Addr.Compare(b.Addr) })
	ports := slices.Clone(s.Ports)
	slices.SortFunc(ports, func(a, b world.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	if n := countBackends(s, p.VIPs); reachability.maxBackends > 0 && n > reachability.maxBackends {
		p.BackendsOverLimit = n
		return p
	}
	p.Listeners = make([]Listener, 0, len(vips)*len(s.Ports))
	for _, vip := range p.VIPs {
		for _, port := range ports {
			taking, others := backends(s, world.FamilyOf(vip.Addr), port)
			reached, outside := reachability.split(taking)
			draining, _ := reachability.split(others)
			p.Listeners = append(p.Listeners, Listener{
				VIP: vip.Addr, Protocol: port.Protocol, Port: port.Port, Backends: reached, Draining: draining,
			})
			p.Unreachable = append(p.Unreachable, outside...)
		}
	}
	slices.SortFunc(p.Unreachable, netip.Addr.Compare)
	p.Unreachable = slices.Compact(p.Unreachable)
	return p
}

// countBackends returns the number of backends of the listeners, ready or not, counting at least one per listener. Its
// cost grows with the number of addresses and slices, not of endpoints.
func countBackends(s *world.Service, vips []VIP) int {
	n := map[world.Family]int{}
	total := 0
	for _, vip := range vips {
		f := world.FamilyOf(vip.Addr)
		if _, known := n[f]; !known {
			for _, port := range s.Ports {
				endpoints := 0
				for _, slice := range s.Slices {
					if _, ok := targetPort(slice, f, port); ok {
						endpoints += len(slice.Endpoints)
					}
				}
				n[f] += max(1, endpoints)
			}
		}
		total += n[f]
	}
	return total
}

// SourceRanges returns the source ranges of a Service by family, as in Service.SourceRanges. If there is none but
// 0.0.0.0/0 and ::/0, clients of both families are admitted: 0.0.0.0/0 is the default of Kubernetes, and stands for all
// clients. Otherwise a family without a range admits no client, because its clients are not in the list.
func SourceRanges(ranges []netip.Prefix) map[world.Family][]netip.Prefix {
	if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Bits() != 0 }) {
		return nil
	}
	out := map[world.Family][]netip.Prefix{world.IPv4: nil, world.IPv6: nil}
	for _, p := range ranges {
		if p.IsValid() { // an invalid range admits no client
			f := world.FamilyOf(p.Addr())
			out[f] = append(out[f], p)
		}
	}
	for f, admitted := range out {
		if slices.ContainsFunc(admitted, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
			delete(out, f)
		}
		slices.SortFunc(admitted, netip.Prefix.Compare)
	}
	return out
}

// backends returns the endpoints that take new connections of a port, and those that don't, both sorted and distinct.
// An address that is in two slices takes connections if it does in one of them.
func backends(s *world.Service, f world.Family, p world.Port) (taking, draining []Backend) {
	var n int
	for _, slice := range s.Slices {
		if _, ok := targetPort(slice, f, p); ok {
			n += len(slice.Endpoints)
		}
	}
	taking = make([]Backend, 0, n)
	each(s, f, p, func(addr netip.AddrPort, e *world.Endpoint, takes bool) bool {
		b := Backend{Addr: addr, Node: e.Node}
		if takes {
			taking = append(taking, b)
		} else {
			draining = append(draining, b)
		}
		return true
	})
	taking, draining = distinct(taking), distinct(draining)
	return taking, slices.DeleteFunc(draining, func(b Backend) bool {
		_, takes := slices.BinarySearchFunc(taking, b, byAddr)
		return takes
	})
}

func byAddr(a, b Backend) int { return a.Addr.Compare(b.Addr) }

// distinct sorts backends and keeps one per address.
func distinct(list []Backend) []Backend {
	slices.SortFunc(list, func(a, b Backend) int { return cmp.Or(byAddr(a, b), cmp.Compare(a.Node, b.Node)) })
	return slices.CompactFunc(list, func(a, b Backend) bool { return a.Addr == b.Addr })
}

// Endpoints yields the endpoints of one family that take new connections of a Service port, with their address and
// target port: those that are ready or, if there are none, those that still serve while they terminate (KEP-1669,
// KEP-1672). The order is that of the slices. An endpoint that is in two slices is yielded twice.
func Endpoints(s *world.Service, f world.Family, p world.Port) iter.Seq2[netip.AddrPort, *world.Endpoint] {
	return func(yield func(netip.AddrPort, *world.Endpoint) bool) {
		each(s, f, p, func(addr netip.AddrPort, e *world.Endpoint, takes bool) bool { return !takes || yield(addr, e) })
	}
}

// each calls do for every endpoint of a Service port, with whether it takes new connections, until do returns false.
func each(
	s *world.Service, f world.Family, p world.Port, do func(addr netip.AddrPort, e *world.Endpoint, takes bool) bool,
) {
	takes := ready
	if !hasReady(s, f, p) {
		takes = isServingTerminating
	}
	for _, slice := range s.Slices {
		target, ok := targetPort(slice, f, p)
		if !ok {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if !do(netip.AddrPortFrom(e.Addr, target), e, takes(e)) {
				return
			}
		}
	}
}

func ready(e *world.Endpoint) bool                { return e.Ready }
func isServingTerminating(e *world.Endpoint) bool { return e.Serving && e.Terminating }

func hasReady(s *world.Service, f world.Family, p world.Port) bool {
	for _, slice := range s.Slices {
		if _, ok := targetPort(slice, f, p); !ok {
			continue
		}
		for i := range slice.Endpoints {
			if ready(&slice.Endpoints[i]) {
				return true
			}
		}
	}
	return false
}

// targetPort returns the port of a slice's endpoints for a Service port. The endpoint controller resolved
// spec.ports[].targetPort, named or not, when it wrote the slice. Name and protocol identify the port. Pods that have
// different numbers for one named port are in different slices.
func targetPort(slice *world.Slice, f world.Family, p world.Port) (uint16, bool) {
	if slice.Family != f {
		return 0, false
	}
	at, _ := slices.BinarySearchFunc(slice.Ports, p, world.Port.Compare)
	for ; at < len(slice.Ports) && slice.Ports[at].Compare(p) == 0; at++ {
		if port := slice.Ports[at].Port; port != 0 {
			return port, true
		}
	}
	return 0, false
}
