// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// For returns what the Service needs to be served on these VIPs, nil if there are none.
func For(s *world.Service, vips []VIP, within *Reach) *Service {
	if len(vips) == 0 {
		return nil
	}
	p := &Service{
		Key:            s.Key,
		VIPs:           slices.Clone(vips),
		Listeners:      make([]Listener, 0, len(vips)*len(s.Ports)),
		ClientAffinity: s.ClientAffinity,
		Sources:        sources(s.SourceRanges),
	}
	slices.SortFunc(p.VIPs, func(a, b VIP) int { return a.Addr.Compare(b.Addr) })
	ports := slices.Clone(s.Ports)
	slices.SortFunc(ports, func(a, b world.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	for _, vip := range p.VIPs {
		for _, port := range ports {
			reached, outside := within.split(backends(s, world.FamilyOf(vip.Addr), port))
			p.Listeners = append(p.Listeners, Listener{VIP: vip.Addr, Protocol: port.Protocol, Port: port.Port, Backends: reached})
			p.Outside = append(p.Outside, outside...)
		}
	}
	slices.SortFunc(p.Outside, netip.Addr.Compare)
	p.Outside = slices.Compact(p.Outside)
	return p
}

// sources are the ranges of clients by family. Ranges that all admit everyone are as good as
// none; else a family that has no range admits nobody, for its clients are not in the list.
func sources(ranges []netip.Prefix) map[world.Family][]netip.Prefix {
	if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Bits() != 0 }) {
		return nil
	}
	out := map[world.Family][]netip.Prefix{world.IPv4: nil, world.IPv6: nil}
	for _, p := range ranges {
		if p.IsValid() { // one that could not be read admits nobody
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

// backends returns the endpoints that take the traffic of a port, sorted and distinct.
func backends(s *world.Service, f world.Family, p world.Port) []Backend {
	var n int
	for _, slice := range s.Slices {
		n += len(slice.Endpoints)
	}
	list := make([]Backend, 0, n)
	for addr, e := range Endpoints(s, f, p) {
		list = append(list, Backend{Addr: addr, Node: e.Node})
	}
	slices.SortFunc(list, func(a, b Backend) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Node, b.Node))
	})
	return slices.CompactFunc(list, func(a, b Backend) bool { return a.Addr == b.Addr })
}

// Endpoints yields the endpoints of one family that take the traffic of a Service port,
// with the address and target port to reach them at: those that are ready or, if there
// are none, those that still serve while they terminate (KEP-1669, KEP-1672). The order
// is that of the slices; an endpoint that is in two slices comes twice.
func Endpoints(s *world.Service, f world.Family, p world.Port) iter.Seq2[netip.AddrPort, *world.Endpoint] {
	return func(yield func(netip.AddrPort, *world.Endpoint) bool) {
		takes := ready
		if !someReady(s, f, p) {
			takes = lastResort
		}
		for _, slice := range s.Slices {
			target, ok := targetPort(slice, f, p)
			if !ok {
				continue
			}
			for i := range slice.Endpoints {
				e := &slice.Endpoints[i]
				if takes(e) && !yield(netip.AddrPortFrom(e.Addr, target), e) {
					return
				}
			}
		}
	}
}

func ready(e *world.Endpoint) bool      { return e.Ready }
func lastResort(e *world.Endpoint) bool { return e.Serving && e.Terminating }

func someReady(s *world.Service, f world.Family, p world.Port) bool {
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

// targetPort finds the port that a slice's endpoints have for a Service port. The
// endpoint controller resolved spec.ports[].targetPort, named or not, when it wrote the
// slice; name and protocol tie the two together, and pods that give one named port
// different numbers come in different slices.
func targetPort(slice *world.Slice, f world.Family, p world.Port) (uint16, bool) {
	if slice.Family != f {
		return 0, false
	}
	for _, sp := range slice.Ports {
		if sp.Name == p.Name && sp.Protocol == p.Protocol && sp.Port != 0 {
			return sp.Port, true
		}
	}
	return 0, false
}
