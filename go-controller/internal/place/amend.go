// SPDX-License-Identifier: Apache-2.0

package place

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Amending serves the many small changes that concern one Service and no other: where it
// shares no backend, the shards of all others stay as they are.

// Add places a Service that was not there and has got its addresses. With false the Spots
// are spoilt: it may have to go where another Service is.
func (s *Spots) Add(svc *world.Service, a *ipam.Allocation) bool {
	addrs := a.Services[svc.Key].Addrs
	if len(addrs) == 0 {
		return true
	}
	if _, known := s.Services[svc.Key]; known {
		return false
	}
	spots := make([]Spot, len(addrs))
	fresh := make([]map[backend]struct{}, len(addrs))
	for i, addr := range addrs {
		fresh[i] = backendsIn(svc, addr)
		d, reason, message := s.layout.carrier(a.PoolOf(addr), addr)
		spots[i] = Spot{Addr: addr, Reason: reason, Message: message}
		if reason != "" {
			continue
		}
		spots[i].Shard = d.shard(addr)
		if _, shared := s.shared.addrs[addr]; shared || !s.anchored(spots[i]) || !s.shared.census.strangers(fresh[i]) {
			return false
		}
	}
	s.Services[svc.Key] = spots
	for i, spot := range spots {
		if spot.Reason == "" {
			s.shared.addrs[spot.Addr] = outsider
		}
		for b := range fresh[i] {
			s.shared.census.count(b)
		}
	}
	return true
}

// outsider stands for a VIP that was placed without having been numbered.
const outsider = -1

// Refresh tells whether the spots stay as they are when the endpoints of a Service change.
// With false the Spots are spoilt: it shares a backend with others, or did.
func (s *Spots) Refresh(was, is *world.Service) bool {
	for _, spot := range s.Services[is.Key] {
		before, after := backendsIn(was, spot.Addr), backendsIn(is, spot.Addr)
		for b := range before {
			if _, stays := after[b]; stays {
				delete(after, b)
			} else if s.shared.census.again(b) {
				return false
			}
		}
		if !s.shared.census.strangers(after) {
			return false
		}
		for b := range after {
			s.shared.census.count(b)
		}
	}
	return true
}

// Remove forgets a Service that exists no more. With false the Spots are spoilt: others
// share its backends or its addresses, or a router port has one.
func (s *Spots) Remove(svc *world.Service) bool {
	for _, spot := range s.Services[svc.Key] {
		for b := range backendsOf(svc, spot.Addr) {
			if s.shared.census.again(b) {
				return false
			}
		}
		if spot.Reason != "" {
			continue
		}
		for _, p := range s.anchors[spot.Shard] {
			if p.Addr() == spot.Addr {
				return false
			}
		}
		delete(s.shared.addrs, spot.Addr)
	}
	delete(s.Services, svc.Key)
	return true
}

// anchored tells whether the shard of a spot has an anchor of its family.
func (s *Spots) anchored(spot Spot) bool {
	for _, p := range s.anchors[spot.Shard] {
		if world.FamilyOf(p.Addr()) == world.FamilyOf(spot.Addr) {
			return true
		}
	}
	return false
}

func backendsIn(svc *world.Service, addr netip.Addr) map[backend]struct{} {
	set := make(map[backend]struct{})
	for b := range backendsOf(svc, addr) {
		set[b] = struct{}{}
	}
	return set
}

// strangers tells whether none of some backends was ever counted.
func (c *census) strangers(set map[backend]struct{}) bool {
	for b := range set {
		if !c.new(b) {
			return false
		}
	}
	return true
}
