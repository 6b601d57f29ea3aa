// SPDX-License-Identifier: Apache-2.0

package place

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sharing finds the VIPs that share a backend or are the same address: disjoint sets of VIPs, each known by its
// smallest number. VIPs are numbered in the order in which they are added.
type sharing struct {
	census *census
	parent []int
	domain []int
	// addrs says which VIP was the first one with an address.
	addrs map[netip.Addr]int
	// users says which VIP was the first to use a backend, if others may use it too.
	users map[backend]int
	// joins and fresh are the findings about the VIP that is being added.
	joins []int
	fresh []backend
}

func newSharing(services []*world.Service, a *ipam.Allocation) *sharing {
	var n int
	for _, s := range services {
		for _, slice := range s.Slices {
			n += len(slice.Endpoints) * len(slice.Ports)
		}
	}
	s := &sharing{census: newCensus(n), users: make(map[backend]int), addrs: make(map[netip.Addr]int, len(services))}
	for _, svc := range services {
		for _, addr := range a.Services[svc.Key].Addrs {
			for b := range backendsOf(svc, addr) {
				s.census.count(b)
			}
		}
	}
	return s
}

// add numbers a VIP of a Service and joins it with those that share a backend. If one
// of them is in another domain, that one is returned and nothing is added.
func (s *sharing) add(svc *world.Service, a netip.Addr, domain int) (other int, conflict bool) {
	me := len(s.parent)
	s.joins, s.fresh = s.joins[:0], s.fresh[:0]
	for b := range backendsOf(svc, a) {
		if !s.census.again(b) {
			continue
		}
		switch user, used := s.users[b]; {
		case !used:
			s.users[b] = me
			s.fresh = append(s.fresh, b)
		case user != me:
			s.joins = append(s.joins, user)
		}
	}
	// The oldest one, so that the order of the endpoints does not choose the message.
	other = -1
	for _, j := range s.joins {
		if s.domain[j] != domain && (other < 0 || j < other) {
			other = j
		}
	}
	if other >= 0 {
		for _, b := range s.fresh {
			delete(s.users, b)
		}
		return other, true
	}
	s.parent = append(s.parent, me)
	s.domain = append(s.domain, domain)
	for _, j := range s.joins {
		s.join(me, j)
	}
	return 0, false
}

// joinAddress joins the VIP added last with the others that are the same address: only one
// shard can answer for it.
func (s *sharing) joinAddress(a netip.Addr) {
	me := len(s.parent) - 1
	if first, shared := s.addrs[a]; shared {
		s.join(me, first)
		return
	}
	s.addrs[a] = me
}

func (s *sharing) find(i int) int {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

func (s *sharing) join(i, j int) {
	i, j = s.find(i), s.find(j)
	s.parent[max(i, j)] = min(i, j)
}
