// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
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
	byFamily := map[world.Family]targets{}
	for _, vip := range p.VIPs {
		if f := world.FamilyOf(vip.Addr); byFamily[f] == nil {
			byFamily[f] = targetsOf(s, f)
		}
	}
	if n := countBackends(s, p.VIPs, byFamily); reachability.maxBackends > 0 && n > reachability.maxBackends {
		p.BackendsOverLimit = n
		return p
	}
	p.Listeners = make([]Listener, 0, len(vips)*len(s.Ports))
	for _, vip := range p.VIPs {
		of := byFamily[world.FamilyOf(vip.Addr)]
		for _, port := range ports {
			taking, others := backends(of[idOf(port)])
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

// countBackends returns the number of backends of the listeners, ready or not, counting at least one per listener.
func countBackends(s *world.Service, vips []VIP, byFamily map[world.Family]targets) int {
	n := map[world.Family]int{}
	for f, of := range byFamily {
		for _, port := range s.Ports {
			n[f] += max(1, of[idOf(port)].endpoints())
		}
	}
	total := 0
	for _, vip := range vips {
		total += n[world.FamilyOf(vip.Addr)]
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
func backends(of portTargets) (taking, draining []Backend) {
	taking = make([]Backend, 0, of.endpoints())
	of.each(func(addr netip.AddrPort, e *world.Endpoint, takes bool) bool {
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
