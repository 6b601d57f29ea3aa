// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Endpoints yields the endpoints of one family that take new connections of any port of a Service, with their address
// and target port, once for each port: those that are ready or, if a port has none, those that still serve while they
// terminate (KEP-1669, KEP-1672). An endpoint that is in two slices is yielded twice.
func Endpoints(s *world.Service, f world.Family) iter.Seq2[netip.AddrPort, *world.Endpoint] {
	return func(yield func(netip.AddrPort, *world.Endpoint) bool) {
		of, more := targetsOf(s, f), true
		for _, port := range s.Ports {
			of[idOf(port)].each(func(addr netip.AddrPort, e *world.Endpoint, takes bool) bool {
				more = !takes || yield(addr, e)
				return more
			})
			if !more {
				return
			}
		}
	}
}

// UsableEndpoints yields the endpoints of one family that take new connections of any port of a Service, as Endpoints
// does, but each of them at most twice, however many ports there are: tenants decide how many ports and endpoints a
// Service has.
func UsableEndpoints(s *world.Service, f world.Family) iter.Seq[*world.Endpoint] {
	return func(yield func(*world.Endpoint) bool) {
		type visit struct {
			slice *world.Slice
			ready bool
		}
		of, haveReady, visited := targetsOf(s, f), map[*world.Slice]bool{}, map[visit]bool{}
		for _, port := range s.Ports {
			v, takes := visit{ready: of[idOf(port)].anyReady(haveReady)}, isServingTerminating
			if v.ready {
				takes = ready
			}
			for _, target := range of[idOf(port)] {
				if v.slice = target.slice; visited[v] {
					continue
				}
				visited[v] = true
				for i := range v.slice.Endpoints {
					if e := &v.slice.Endpoints[i]; takes(e) && !yield(e) {
						return
					}
				}
			}
		}
	}
}

// targets are the EndpointSlices of one family, by port. A Service and its slices may have thousands of ports, and a
// Service thousands of slices, so nothing may compare all with all.
type targets map[portID]portTargets

// portID matches ports of a Service to ports of its slices.
type portID struct {
	name     string
	protocol world.Protocol
}

func idOf(p world.Port) portID { return portID{p.Name, p.Protocol} }

// portTargets are the slices that have a port, in the order of the Service's slices.
type portTargets []target

// target is a slice with the number that a port has in it. The endpoint controller resolved spec.ports[].targetPort,
// named or not, when it wrote the slice. Pods that have different numbers for one named port are in different slices.
type target struct {
	slice *world.Slice
	port  uint16
}

// slicePorts returns the number of ports to look at for the targets of a Service.
func slicePorts(s *world.Service) int {
	n := 0
	for _, slice := range s.Slices {
		if len(slice.Endpoints) > 0 {
			n += len(slice.Ports)
		}
	}
	return n
}

// targetsOf returns no slices for a Service that exceeds MaxSlicePorts.
func targetsOf(s *world.Service, f world.Family) targets {
	all := make(targets, len(s.Ports))
	for _, port := range s.Ports {
		all[idOf(port)] = nil
	}
	if slicePorts(s) > MaxSlicePorts {
		return all
	}
	for _, slice := range s.Slices {
		if slice.Family != f || len(slice.Endpoints) == 0 {
			continue
		}
		for _, port := range slice.Ports {
			found, wanted := all[idOf(port)]
			again := len(found) > 0 && found[len(found)-1].slice == slice // the first number counts
			if wanted && !again && port.Port != 0 {
				all[idOf(port)] = append(found, target{slice, port.Port})
			}
		}
	}
	return all
}

// endpoints returns the number of endpoints, ready or not.
func (t portTargets) endpoints() int {
	n := 0
	for _, target := range t {
		n += len(target.slice.Endpoints)
	}
	return n
}

// each calls do for every endpoint, with whether it takes new connections, until do returns false.
func (t portTargets) each(do func(addr netip.AddrPort, e *world.Endpoint, takes bool) bool) {
	takes := ready
	if !t.haveReady() {
		takes = isServingTerminating
	}
	for _, target := range t {
		for i := range target.slice.Endpoints {
			e := &target.slice.Endpoints[i]
			if !do(netip.AddrPortFrom(e.Addr, target.port), e, takes(e)) {
				return
			}
		}
	}
}

// anyReady is haveReady, which looks at no slice twice: known has those that were looked at.
func (t portTargets) anyReady(known map[*world.Slice]bool) bool {
	for _, target := range t {
		is, seen := known[target.slice]
		if !seen {
			is = portTargets{target}.haveReady()
			known[target.slice] = is
		}
		if is {
			return true
		}
	}
	return false
}

func (t portTargets) haveReady() bool {
	for _, target := range t {
		for i := range target.slice.Endpoints {
			if ready(&target.slice.Endpoints[i]) {
				return true
			}
		}
	}
	return false
}

func ready(e *world.Endpoint) bool                { return e.Ready }
func isServingTerminating(e *world.Endpoint) bool { return e.Serving && e.Terminating }
