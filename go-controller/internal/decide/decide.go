// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Decision is the result of one pass over a snapshot.
type Decision struct {
	World        *world.Snapshot
	Layout       *place.Layout
	Allocation   *ipam.Allocation
	Placements   *place.Placements
	Topology     *plan.Topology
	Reachability *plan.Reachability
	// Plans has the plan of each Service that has one. It is the only place with the plans of a decision, and amendments
	// change it. An equal plan keeps its pointer, so that the pointer is the generation of a plan: another pointer is
	// another plan.
	Plans map[world.Key]*plan.Service
	// Egress are the hosts that get the replies to connections that pods open, by address of Services.
	Egress map[netip.Addr]Egress
	// Later are the changes of endpoints that the plans do not contain, because they need much work. AmendAll applies
	// them.
	Later     map[world.Key]world.Change
	budget    *plan.Budget
	BGP       *bgp.Layout
	refreshes refreshes
	// grants are those of the overlay.
	grants map[world.Key]grant
	// Refreshed are the status refreshes that start with this pass.
	Refreshed []Refresh
	// Probes has the probe requests for the guard of each node, with addresses in order.
	Probes map[string][]world.ProbeRequest
	// Ignored are the conflict reports that were ignored, and were not in the pass before.
	Ignored []IgnoredReport
	// Due is when another pass is needed even if no fact changes, or the zero time if none is. ProbesDue is the same
	// because of the probe requests.
	Due, ProbesDue time.Time
}

// State is carried over from one pass to the next. The zero value is that of a process that has decided nothing yet.
type State struct {
	// overlay is what the statuses of objects do not show yet.
	overlay overlay
	// plans is Plans of the last decision, the same map, and inputs has what each of its plans was computed from.
	plans  map[world.Key]*plan.Service
	inputs map[world.Key]planInputs
	// reachability is that of the last pass. The pointer stays the same as long as the value is equal.
	reachability *plan.Reachability
	// bgp is that of the last decision.
	bgp *bgp.Layout
	// probing tracks the new addresses that guards are asked to probe.
	probing   probing
	refreshes refreshes
}

// planInputs are the inputs of a plan, without the limit that the Service exceeds, which the plan has.
type planInputs struct {
	from         *world.Service
	vips         []plan.VIP
	reachability *plan.Reachability
	demand       plan.Demand
}

// lastExcess is the limit that a Service exceeds according to its last plan.
func (st *State) lastExcess(key world.Key) plan.Excess {
	if p := st.plans[key]; p != nil {
		return p.Excess
	}
	return plan.Excess{}
}

// NewState returns the state of a process that has decided nothing yet. epoch must differ from that of other processes:
// the IDs of probe requests contain it.
func NewState(epoch uint64) State { return State{probing: probing{epoch: epoch}} }

// Decide computes every decision for a snapshot.
func (st *State) Decide(w *world.Snapshot) *Decision {
	w = st.overlay.applyTo(w)
	st.refreshes.addHopeless(w)
	layout := place.Compute(w)
	w = st.probing.accept(w, layout)
	d := &Decision{World: w, Layout: layout}
	d.Allocation = ipam.Allocate(w, d.Layout.ShardOf)
	st.overlay.record(w, d.Allocation)
	d.grants = st.overlay.grants
	d.Placements = d.Layout.Place(w, d.Allocation, st.withholdUnprobed(d))
	st.computeTopology(d)
	d.computeEgress()
	if reachability := plan.NewReachability(w); !reachability.Equal(st.reachability) {
		st.reachability = reachability
	}
	d.Reachability = st.reachability
	d.BGP = bgp.NewLayout(w, d.Allocation, layout.ConfiguredShardOf)
	d.BGP.KeepFrom(st.bgp)
	st.bgp = d.BGP
	if st.refreshes == nil {
		st.refreshes = refreshes{}
	}
	d.refreshes = st.refreshes
	d.Refreshed, d.Due = st.refreshes.decide(d)
	d.Due = world.Earliest(d.Due, st.overlay.recordMoves(w, layout), st.overlay.recordRecoveries(w, layout),
		firstCooldownEnd(d.Allocation), d.firstZoneWaitEnd())
	st.computeProbes(d)
	d.Ignored = st.probing.newlyIgnored
	if st.inputs == nil {
		st.inputs = map[world.Key]planInputs{}
	}
	d.Plans = make(map[world.Key]*plan.Service, len(d.Placements.Services))
	var excess map[world.Key]plan.Excess
	d.budget, excess = plan.NewBudget(w.Cluster.Limits, st.demands(d))
	st.planAll(d, excess)
	maps.DeleteFunc(st.inputs, func(k world.Key, _ planInputs) bool { return d.Plans[k] == nil })
	st.plans = d.Plans
	return d
}

// computeProbes computes the probe requests.
func (st *State) computeProbes(d *Decision) {
	d.Probes, d.ProbesDue = st.probing.probes(d.World.Now), st.probing.end()
	if st.probing.overdue {
		d.ProbesDue = d.World.Now
	}
}

// MayAwaitZone reports whether new addresses in the status of a Service may wait until the zones of their gateways have
// programmed them, with interconnect. They wait from when they were granted: the Service may be older than its pool, or
// may have been created while no controller ran. After a restart, the wait begins again.
func (d *Decision) MayAwaitZone(key world.Key) bool {
	g := d.grants[key]
	return len(g.addrs) > 0 && d.Layout.Interconnect &&
		(g.since.IsZero() || d.World.Now.Before(g.since.Add(world.ProgramWait)))
}

// firstZoneWaitEnd returns when the status of the first Service that waits for a zone is written in any case, or the
// zero time if none waits.
func (d *Decision) firstZoneWaitEnd() time.Time {
	var first time.Time
	for key, g := range d.grants {
		if d.MayAwaitZone(key) {
			first = world.Earliest(first, g.since.Add(world.ProgramWait))
		}
	}
	return first
}

// computeTopology computes the topology from the layout and the present anchors.
func (st *State) computeTopology(d *Decision) {
	d.Topology = d.Layout.Topology(d.World, d.Placements)
	d.World.Anchors = st.overlay.recordAnchors(d.Topology)
	if !d.Layout.Interconnect {
		return
	}
	d.World.Ordinals = st.overlay.recordOrdinals(d.Topology)
}

// topologyOf returns a function that restores the present topology of a decision.
func (st *State) topologyOf(d *Decision) (restore func()) {
	topology, anchors, ordinals := d.Topology, st.overlay.anchors, st.overlay.ordinals
	return func() {
		d.Topology, st.overlay.anchors, st.overlay.ordinals = topology, anchors, ordinals
		d.World.Anchors, d.World.Ordinals = anchors, ordinals
	}
}

// Planned returns the Service that the plan for a key was computed from. It returns false if there is no plan.
func (st *State) Planned(key world.Key) (*world.Service, bool) {
	in, ok := st.inputs[key]
	return in.from, ok
}

// demands returns those of all Services, oldest first.
func (st *State) demands(d *Decision) []plan.ServiceDemand {
	services := d.Allocation.InOrder()
	out := make([]plan.ServiceDemand, 0, len(services))
	for _, s := range services {
		if demand := st.demand(d, s); demand != (plan.Demand{}) {
			out = append(out, plan.ServiceDemand{Key: s.Key, Demand: demand})
		}
	}
	return out
}

// demand returns the demand of a Service. It computes a new one only if the Service or its VIPs changed.
func (st *State) demand(d *Decision, s *world.Service) plan.Demand {
	vips := d.vips(s.Key)
	last, ok := st.inputs[s.Key]
	if ok && last.from == s && slices.Equal(last.vips, vips) {
		return last.demand
	}
	return plan.DemandOf(s, vips)
}

// planAll plans all Services. Beyond amendBatch it leaves new endpoints of a Service to amendments, which serve the
// other namespaces first: nothing can be amended during a full decision.
func (st *State) planAll(d *Decision, excess map[world.Key]plan.Excess) {
	d.Later = map[world.Key]world.Change{}
	work := 0
	for _, s := range d.World.Services {
		demand, last := st.demand(d, s), st.inputs[s.Key]
		if last.from == s || work < amendBatch || !st.mayPlanLater(d, s, excess[s.Key]) {
			if st.plan(d, s, demand, excess[s.Key]); last.from != s {
				work += demand.Work()
			}
			continue
		}
		last.demand = demand
		st.inputs[s.Key], d.Plans[s.Key] = last, st.plans[s.Key]
		d.Later[s.Key] = d.World.Changed[s.Key]
	}
}

// mayPlanLater reports whether the plan that a Service has is right until AmendAll has applied its new endpoints.
func (st *State) mayPlanLater(d *Decision, s *world.Service, excess plan.Excess) bool {
	c, last := d.World.Changed[s.Key], st.inputs[s.Key]
	return c.Is == s && st.replansOnly(s.Key, c) && slices.Equal(c.Was.Assigned, s.Assigned) &&
		slices.Equal(c.Was.AssignedHosts, s.AssignedHosts) && last.reachability == d.Reachability &&
		st.lastExcess(s.Key) == excess && slices.Equal(last.vips, d.vips(s.Key))
}

// plan computes the plan of a Service that has VIPs. It computes a new plan only if the Service, its VIPs, the limit
// that it exceeds or the reachability changed. An equal plan keeps its pointer.
func (st *State) plan(d *Decision, s *world.Service, demand plan.Demand, excess plan.Excess) {
	vips := d.vips(s.Key)
	if len(vips) == 0 {
		return
	}
	in, ok := st.inputs[s.Key]
	p := st.plans[s.Key]
	if !ok || in.from != s || in.reachability != d.Reachability || st.lastExcess(s.Key) != excess ||
		!slices.Equal(in.vips, vips) {
		var fresh *plan.Service
		if excess.Limit == plan.NoLimit {
			fresh = plan.For(s, vips, d.Reachability)
		} else {
			fresh = plan.Beyond(s, vips, excess)
		}
		if !plan.Equal(fresh, p) {
			p = fresh
		}
		st.inputs[s.Key] = planInputs{s, vips, d.Reachability, demand}
	}
	d.Plans[s.Key] = p
}
