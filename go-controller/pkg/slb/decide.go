// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// decision is the result of one pass.
type decision struct {
	world        *world.Snapshot
	layout       *place.Layout
	allocation   *ipam.Allocation
	placements   *place.Placements
	fabric       *plan.Fabric
	reachability *plan.Reachability
	plans        map[world.Key]*plan.Service
	bgp          *bgp.Layout
	// refreshes are the status refreshes that make OVN-Kubernetes recompute flows. refreshDue is when the next one may be
	// due.
	refreshes  refreshes
	refreshDue time.Time
}

// state is carried over from one pass to the next.
type state struct {
	// grants are granted addresses that the API server does not show yet.
	grants map[world.Key]grant
	// external are the addresses in spec.externalIPs that the last pass found to be held by the Service.
	external map[world.Key]grant
	// leases are the leases of the pools with a ReuseDelay. They are newer than those in the pools' statuses.
	leases map[string][]world.Lease
	// planned holds the plans of the last pass and their inputs.
	planned map[world.Key]plannedService
	// reachability is that of the last pass. The pointer stays the same as long as the value is equal.
	reachability *plan.Reachability
	// probation tracks the new addresses that guards are asked to probe.
	probation probation
	refreshes refreshes
}

// grant records the addresses granted to a Service while its status showed different ones.
type grant struct {
	uid   string
	addrs []netip.Addr
	// over are the addresses that the status showed.
	over []netip.Addr
}

// stands reports whether a grant is still being written, given the addresses in the status. If the status shows any
// other addresses, another client wrote them first, and they are the Service's addresses. Otherwise two controllers
// that run at the same time would overwrite each other indefinitely.
func (g *grant) stands(shown []netip.Addr) bool {
	return len(shown) == 0 || slices.Equal(shown, g.addrs) || slices.Equal(shown, g.over)
}

type plannedService struct {
	from         *world.Service
	vips         []plan.VIP
	reachability *plan.Reachability
	plan         *plan.Service
}

// decide computes every decision for a snapshot.
func (m *state) decide(w *world.Snapshot) *decision {
	w = m.recall(w)
	layout := place.Compute(w)
	w = m.withExternal(m.probation.accept(w, layout))
	d := &decision{world: w, layout: layout}
	d.allocation = ipam.Allocate(w, m.held(w), d.layout.ShardOf)
	m.remember(w, d.allocation)
	m.rememberExternal(w, d.allocation)
	m.rememberLeases(w, d.allocation)
	d.placements = d.layout.Place(w, d.allocation, m.review(d))
	d.computeFabric()
	if reachability := plan.NewReachability(w); !reachability.Equal(m.reachability) {
		m.reachability = reachability
	}
	d.reachability = m.reachability
	d.bgp = bgp.Compute(w, d.allocation, layout.Home)
	if m.refreshes == nil {
		m.refreshes = refreshes{}
	}
	d.refreshes, d.refreshDue = m.refreshes, m.refreshes.decide(d)
	if m.planned == nil {
		m.planned = map[world.Key]plannedService{}
	}
	d.plans = make(map[world.Key]*plan.Service, len(d.placements.Services))
	for _, s := range w.Services {
		m.plan(d, s)
	}
	maps.DeleteFunc(m.planned, func(k world.Key, _ plannedService) bool { return d.plans[k] == nil })
	return d
}

// computeFabric computes the fabric from the layout and the present anchors.
func (d *decision) computeFabric() { d.fabric = d.layout.Fabric(d.world, d.placements) }

// held returns the pending grants of Services that still exist.
func (m *state) held(w *world.Snapshot) map[world.Key][]netip.Addr {
	held := make(map[world.Key][]netip.Addr, len(m.grants))
	for _, s := range w.Services {
		if g, ok := m.grants[s.Key]; ok && g.uid == s.UID && g.stands(s.Assigned) {
			held[s.Key] = g.addrs
		}
	}
	return held
}

func (m *state) remember(w *world.Snapshot, a *ipam.Allocation) {
	m.grants = map[world.Key]grant{}
	for _, s := range w.Services {
		addrs := a.Services[s.Key].Addrs
		if len(addrs) > 0 && !slices.Equal(addrs, s.Assigned) {
			m.grants[s.Key] = grant{s.UID, addrs, s.Assigned}
		}
	}
}

// withExternal returns the snapshot with the external addresses that were found to be held by Services but that their
// statuses do not show yet.
func (m *state) withExternal(w *world.Snapshot) *world.Snapshot {
	if len(m.external) == 0 {
		return w
	}
	out := *w
	out.HeldExternalIPs = make(map[world.Key][]netip.Addr, len(m.external))
	for _, s := range w.Services {
		if g, ok := m.external[s.Key]; ok && g.uid == s.UID && g.stands(s.HeldExternalIPs) {
			out.HeldExternalIPs[s.Key] = g.addrs
		}
	}
	return &out
}

func (m *state) rememberExternal(w *world.Snapshot, a *ipam.Allocation) {
	m.external = map[world.Key]grant{}
	for _, s := range w.Services {
		own := a.Services[s.Key].HeldExternal
		if !slices.Equal(own, s.HeldExternalIPs) {
			m.external[s.Key] = grant{s.UID, own, s.HeldExternalIPs}
		}
	}
}

// plan computes the plan of a Service that has VIPs. It computes a new plan only if the Service, its VIPs or the
// reachability changed. An equal plan keeps its pointer.
func (m *state) plan(d *decision, s *world.Service) {
	vips := d.placements.VIPs(s.Key)
	if len(vips) == 0 {
		return
	}
	last, ok := m.planned[s.Key]
	if !ok || last.from != s || last.reachability != d.reachability || !slices.Equal(last.vips, vips) {
		fresh := plan.For(s, vips, d.reachability)
		if ok && loop.Equal(fresh, last.plan) {
			fresh = last.plan
		}
		last = plannedService{s, vips, d.reachability, fresh}
	}
	m.planned[s.Key] = last
	d.plans[s.Key] = last.plan
}
