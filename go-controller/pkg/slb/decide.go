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

// decision is what one pass comes to.
type decision struct {
	world        *world.Snapshot
	layout       *place.Layout
	allocation   *ipam.Allocation
	placements   *place.Placements
	fabric       *plan.Fabric
	reachability *plan.Reachability
	plans        map[world.Key]*plan.Service
	bgp          *bgp.Layout
	// refreshes are those of the statuses that OVN-Kubernetes has to see anew, refreshDue is when there may be another.
	refreshes  refreshes
	refreshDue time.Time
}

// state is what passes hand on to each other.
type state struct {
	// grants are addresses that the API server does not show yet.
	grants map[world.Key]grant
	// external are the addresses of spec.externalIPs that the last pass found to be a Service's own.
	external map[world.Key]grant
	// leases are those of the pools with a ReuseDelay, newer than the pools' statuses.
	leases map[string][]world.Lease
	// planned are the plans of the last pass with what they were made from.
	planned map[world.Key]plannedService
	// reachability is that of the last pass, the same pointer as long as it is equal.
	reachability *plan.Reachability
	// probation has the new addresses that guards are asked about.
	probation probation
	refreshes refreshes
}

// grant is what a Service was given while the status showed something else.
type grant struct {
	uid   string
	addrs []netip.Addr
	// over are the addresses that the status showed.
	over []netip.Addr
}

// stands reports whether a grant is still being written if the status shows these addresses. If they are any others,
// somebody else wrote them first, and they are what the Service has: two controllers that run at once would overwrite
// each other for ever.
func (g *grant) stands(shown []netip.Addr) bool {
	return len(shown) == 0 || slices.Equal(shown, g.addrs) || slices.Equal(shown, g.over)
}

type plannedService struct {
	from         *world.Service
	vips         []plan.VIP
	reachability *plan.Reachability
	plan         *plan.Service
}

// decide makes every decision about a snapshot.
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

// computeFabric makes the fabric of the layout and the anchors that there are.
func (d *decision) computeFabric() { d.fabric = d.layout.Fabric(d.world, d.placements) }

// held are the grants to Services that still exist.
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

// withExternal returns the snapshot with the external addresses that we found to be Services'
// own and whose statuses don't show that yet.
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

// plan makes the plan of a Service that has a place. It is made anew if the Service, the
// place or the reach differs, and what stays the same is the same pointer.
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
