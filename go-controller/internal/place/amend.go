// SPDX-License-Identifier: Apache-2.0

package place

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Add and Remove handle the many small changes that concern a single Service. The shard of an address depends on the
// address alone, so the addresses of all other Services stay in place. Only an anchor may change, and with it the
// Topology.

// Add places a Service that is the youngest with a placement and already has its addresses, those in withheld excepted.
// It reports whether one of them is an anchor.
func (ps *Placements) Add(
	w *world.Snapshot, svc *world.Service, a *ipam.Allocation, withheld map[netip.Addr]Withheld,
) (anchored bool) {
	addrs := a.Services[svc.Key].VIPs()
	if len(addrs) == 0 {
		return false
	}
	placements := ps.add(w, svc, a, addrs, withheld)
	ps.Services[svc.Key] = placements
	return slices.ContainsFunc(placements, ps.isAnchor(w))
}

// Remove removes the placement of a Service that shares no address. It reports whether one of its addresses was
// an anchor.
func (ps *Placements) Remove(w *world.Snapshot, svc *world.Service) (anchored bool) {
	placements := ps.Services[svc.Key]
	anchored = slices.ContainsFunc(placements, ps.isAnchor(w))
	for _, placement := range placements {
		if placement.Reason == "" {
			l := placement.shardFamily()
			ps.vipsByShard[l] = ps.vipsByShard[l].without(placement.Addr)
		}
	}
	delete(ps.Services, svc.Key)
	return anchored
}

// isAnchor returns a function that reports whether an address is an anchor.
func (ps *Placements) isAnchor(w *world.Snapshot) func(Placement) bool {
	return func(placement Placement) bool {
		anchor, _ := ps.vipsByShard[placement.shardFamily()].anchor(w.Anchors[placement.Shard])
		return placement.Reason == "" && anchor.Addr() == placement.Addr
	}
}
