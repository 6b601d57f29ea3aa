// SPDX-License-Identifier: Apache-2.0

package place

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Amending serves the many small changes that concern one Service and no other. The shard
// of an address depends on the address alone, so those of all others stay as they are;
// what may change is an anchor, and with it the Fabric.

// Add places a Service that was not there, is the youngest and has got its addresses. It
// tells whether one of them is an anchor.
func (s *Spots) Add(svc *world.Service, a *ipam.Allocation) (anchored bool) {
	addrs := a.Services[svc.Key].VIPs()
	if len(addrs) == 0 {
		return false
	}
	spots := s.place(a, addrs, nil)
	s.Services[svc.Key] = spots
	return slices.ContainsFunc(spots, s.isAnchor)
}

// Remove forgets a Service that exists no more and shares no address. It tells whether one
// of them was an anchor.
func (s *Spots) Remove(svc *world.Service) (anchored bool) {
	spots := s.Services[svc.Key]
	anchored = slices.ContainsFunc(spots, s.isAnchor)
	for _, spot := range spots {
		if spot.Reason == "" {
			l := spot.line()
			s.lines[l] = slices.DeleteFunc(s.lines[l], func(p netip.Prefix) bool { return p.Addr() == spot.Addr })
		}
	}
	delete(s.Services, svc.Key)
	return anchored
}

// isAnchor tells whether an address is an anchor.
func (s *Spots) isAnchor(spot Spot) bool {
	return spot.Reason == "" && s.lines[spot.line()][0].Addr() == spot.Addr
}
