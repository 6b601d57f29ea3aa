// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Amending serves the many small changes that concern one Service and no other. The shard
// of an address depends on the address alone, so those of all others stay as they are;
// what may change is a router port, which has one of the addresses.

// Add places a Service that was not there and has got its addresses. With false the Spots
// are spoilt: one of them is the first of its shard.
func (s *Spots) Add(svc *world.Service, a *ipam.Allocation) bool {
	addrs := a.Services[svc.Key].VIPs()
	if len(addrs) == 0 {
		return true
	}
	if _, known := s.Services[svc.Key]; known {
		return false
	}
	for _, addr := range addrs {
		if d, reason, _ := s.layout.carrier(a.PoolOf(addr), addr); reason == "" && !s.anchored(d.shard(addr), world.FamilyOf(addr)) {
			return false
		}
	}
	s.Services[svc.Key] = s.place(a, addrs, nil)
	return true
}

// Remove forgets a Service that exists no more. With false the Spots are spoilt: a router
// port has one of its addresses.
func (s *Spots) Remove(svc *world.Service) bool {
	for _, spot := range s.Services[svc.Key] {
		for _, p := range s.anchors[spot.Shard] {
			if spot.Reason == "" && p.Addr() == spot.Addr {
				return false
			}
		}
	}
	delete(s.Services, svc.Key)
	return true
}

// anchored tells whether a shard has an anchor of a family.
func (s *Spots) anchored(id world.ShardID, f world.Family) bool {
	for _, p := range s.anchors[id] {
		if world.FamilyOf(p.Addr()) == f {
			return true
		}
	}
	return false
}
