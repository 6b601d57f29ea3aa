// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// amendBatch is how many backends one call of AmendAll plans before it leaves the rest for the next one. It takes about
// as long as a full decision about 5,000 Services.
const amendBatch = 20_000

// Amendment is what AmendAll did.
type Amendment struct {
	// Plans are the plans that are different now, nil for Services that have none any more.
	Plans map[world.Key]*plan.Service
	// Incomplete reports that a full decision is needed, because the existing one lacks some of the changes or was
	// amended in advance. Until then, missing must be set.
	Incomplete bool
	// Later are the changes that wait for the next call, because they need much work: that of one namespace does not
	// delay what others changed. The decision does not contain them.
	Later map[world.Key]world.Change
	// Probes reports that the probe requests of the decision have changed.
	Probes bool
}

// AmendAll applies changes of Services to an existing decision. If missing is set, the decision lacks earlier changes,
// of Services or of other objects.
func (st *State) AmendAll(d *Decision, changes map[world.Key]world.Change, missing bool) Amendment {
	a := Amendment{Later: map[world.Key]world.Change{}}
	amended := func(key world.Key, amend func() bool) bool { return a.record(d, key, amend) }
	var others []world.Key
	work, probes := 0, st.probing.seq
	for _, key := range st.leastWorkFirst(changes) {
		c := changes[key]
		if !st.replansOnly(key, c) {
			others = append(others, key)
			// What it requests is not given to another Service first.
			missing = missing || c.SpecChanged
			continue
		}
		if work >= amendBatch {
			a.Later[key] = c
			continue
		}
		if !amended(key, func() bool {
			e := st.change(d, key, c, inAdvance)
			missing = missing || e == inAdvance
			return e != unamendable
		}) {
			others = append(others, key)
		}
		work += st.inputs[key].demand.Work()
	}
	for _, key := range others {
		if missing = missing || !amended(key, func() bool { return st.Amend(d, key, changes[key]) }); missing {
			break
		}
	}
	a.Incomplete, a.Probes = missing, st.probing.seq != probes
	if a.Probes {
		st.computeProbes(d)
	}
	return a
}

// record records the plan of a Service if amend has changed it, and returns what amend returns.
func (a *Amendment) record(d *Decision, key world.Key, amend func() bool) bool {
	before := d.Plans[key]
	if !amend() {
		return false
	}
	if now := d.Plans[key]; now != before {
		if a.Plans == nil {
			a.Plans = map[world.Key]*plan.Service{}
		}
		a.Plans[key] = now
	}
	return true
}

// AmendProbed amends a decision further, which was amended completely, after guards have completed other probe requests
// than before, given those of each of these guards, and have reported nothing else: it announces what they have probed.
func (st *State) AmendProbed(d *Decision, probed map[string][]string, a *Amendment) {
	for _, s := range st.probing.recordProbed(d, probed) {
		a.Probes = true
		if !a.record(d, s.Key, func() bool { return st.placeAgain(d, s) }) {
			a.Incomplete = true
			return
		}
	}
	if a.Probes {
		st.computeProbes(d)
		a.Incomplete = st.probing.hasWaiting() // They get their turns from a full decision.
	}
}

// placeAgain places and plans a Service anew whose addresses are withheld no longer, or for another reason.
func (st *State) placeAgain(d *Decision, s *world.Service) bool {
	restore, withheld := st.topologyOf(d), st.probing.withholdAgain(d, s)
	anchored := d.Placements.Remove(d.World, s)
	if anchored = d.Placements.Add(d.World, s, d.Allocation, withheld) || anchored; anchored {
		st.computeTopology(d)
	}
	if d.decidesEgress(s.Key, anchored) || st.replan(d, s, complete) != complete {
		restore()
		return false
	}
	return true
}

// leastWorkFirst returns the keys of changes, those of the namespaces first in which less must be planned anew.
func (st *State) leastWorkFirst(changes map[world.Key]world.Change) []world.Key {
	work := map[string]int{}
	keys := make([]world.Key, 0, len(changes))
	for key := range changes {
		keys = append(keys, key)
		work[key.Namespace] += st.inputs[key].demand.Work()
	}
	slices.SortFunc(keys, func(a, b world.Key) int {
		return cmp.Or(cmp.Compare(work[a.Namespace], work[b.Namespace]), a.Compare(b))
	})
	return keys
}

// effect is what a change does to a decision.
type effect uint8

const (
	// unamendable: the change needs a full decision.
	unamendable effect = iota
	// inAdvance: the decision contains the change, but a full one may give the Service or others something else.
	inAdvance
	// complete: a full decision would have the same result.
	complete
)

// Amend applies the change of one Service to an existing full decision if the change affects no other Service. The
// result is the same as that of a new full decision at the time of the World. If Amend returns false, a new decision
// must be computed. Until then, Topology and Plans stay as they were, and nothing but AmendAll may use the decision.
func (st *State) Amend(d *Decision, key world.Key, c world.Change) bool {
	restore := st.topologyOf(d)
	if !st.amend(d, key, c) {
		restore()
		return false
	}
	return true
}

func (st *State) amend(d *Decision, key world.Key, c world.Change) bool {
	switch {
	case c.SpecChanged:
		return false
	case c.Was == nil && c.Is == nil:
		return true
	case c.Was == nil:
		return st.add(d, c.Is)
	case c.Is == nil:
		return st.remove(d, c.Was)
	}
	return st.change(d, key, c, complete) == complete
}

// replansOnly reports whether a change is one of the endpoints or of the status of a Service that has a plan, and the
// decision contains all earlier changes of the Service itself. Such a change can be applied to a decision that lacks
// others: those that Amend refused, and those of nodes, pools and so on.
//
// The result is that of a full decision if the endpoints had changed before the missing changes. This can happen
// anyway: the API server orders the changes of one object only. The plan has the same addresses and shards as before,
// and depends on nothing else but the Service and the nodes, as the decision knows them. The full decision that
// follows contains everything. What takes or frees an address must wait for it, because a missing change may have an
// older claim to the address.
func (st *State) replansOnly(key world.Key, c world.Change) bool {
	return !c.SpecChanged && c.Was != nil && c.Is != nil && st.inputs[key].from == c.Was
}

// change amends the decision after a change of the endpoints or of the status. It changes nothing if the effect would
// be less than that.
func (st *State) change(d *Decision, key world.Key, c world.Change, least effect) effect {
	if !slices.Equal(c.Was.AssignedHosts, c.Is.AssignedHosts) {
		return unamendable
	}
	shown := !slices.Equal(c.Was.Assigned, c.Is.Assigned)
	if shown && (len(c.Was.Assigned) > 0 || !slices.Equal(c.Is.Assigned, d.Allocation.Services[key].Addrs)) {
		return unamendable
	}
	if (c.Was.IsCleared() || c.Is.IsCleared()) && !slices.Equal(c.Was.Shown(), c.Is.Shown()) {
		return unamendable
	}
	e := st.replan(d, c.Is, least)
	if shown && e != unamendable {
		delete(st.overlay.grants, key)
	}
	return e
}

// replan plans a Service anew after a change that affects no other one, unless the change of its demand does. It
// changes nothing if the effect would be less than that.
func (st *State) replan(d *Decision, s *world.Service, least effect) effect {
	last := st.inputs[s.Key]
	demand, excess, e := st.demand(d, s), st.lastExcess(s.Key), complete
	if demand != last.demand {
		var ok bool
		if excess, ok = d.budget.Replace(s.Key.Namespace, last.demand, demand); !ok {
			if least == complete || st.lastExcess(s.Key).Limit != plan.NoLimit {
				return unamendable
			}
			if excess, ok = d.budget.Advance(s.Key.Namespace, last.demand, demand); !ok {
				return unamendable
			}
			e = inAdvance
		}
	}
	st.plan(d, s, demand, excess)
	if st.probing.withheld[s.Key] != nil {
		st.probing.withheld[s.Key] = s
	}
	return e
}

func (st *State) add(d *Decision, s *world.Service) bool {
	o, ok := d.Allocation.Add(s)
	if !ok {
		return false
	}
	withheld, ok := st.probing.withholdNew(d, s, o.Addrs)
	if !ok {
		return false
	}
	anchored := d.Placements.Add(d.World, s, d.Allocation, withheld)
	if d.decidesEgress(s.Key, anchored) {
		return false
	}
	if anchored {
		st.computeTopology(d)
	}
	if len(o.Addrs) > 0 {
		st.overlay.grants[s.Key] = grant{uid: s.UID, addrs: o.Addrs}
		st.overlay.addLeases(d, s.Key, o.Addrs)
	}
	return st.replan(d, s, complete) == complete
}

func (st *State) remove(d *Decision, s *world.Service) bool {
	if !d.Allocation.Remove(s) {
		return false
	}
	anchored := d.Placements.Remove(d.World, s)
	if d.decidesEgress(s.Key, anchored) {
		return false
	}
	if anchored {
		st.computeTopology(d)
	}
	if _, ok := d.budget.Replace(s.Key.Namespace, st.inputs[s.Key].demand, plan.Demand{}); !ok {
		return false
	}
	delete(st.overlay.grants, s.Key)
	delete(st.inputs, s.Key)
	delete(st.probing.withheld, s.Key)
	delete(d.Plans, s.Key)
	return true
}
