// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Beyond returns the plan of a Service that exceeds a limit. It has no Listeners.
func Beyond(s *world.Service, vips []VIP, excess Excess) *Service {
	return &Service{Key: s.Key, VIPs: sortedVIPs(vips), Excess: excess}
}

func sortedVIPs(vips []VIP) []VIP {
	return slices.SortedFunc(slices.Values(vips), func(a, b VIP) int { return a.Addr.Compare(b.Addr) })
}

// For returns the plan to serve the Service on these VIPs, or nil if there are none.
func For(s *world.Service, vips []VIP, reachability *Reachability) *Service {
	if len(vips) == 0 {
		return nil
	}
	p := &Service{
		Key:               s.Key,
		VIPs:              sortedVIPs(vips),
		SessionAffinity:   s.SessionAffinity,
		ConnectionsMayEnd: s.ConnectionsMayEnd,
		SourceRanges:      s.SourceRanges,
	}
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
