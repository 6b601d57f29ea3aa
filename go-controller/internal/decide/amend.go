// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// AmendAll applies changes of Services to an existing decision. It returns the plans that are different now, nil for
// Services that have none any more, and false if a full decision is needed because the existing one lacks some of the
// changes. Until then, missing must be set. It means that the decision lacks earlier changes, of Services or of other
// objects.
func (m *State) AmendAll(d *Decision, changes map[world.Key]world.Change, missing bool) (
	plans map[world.Key]*plan.Service, ok bool) {
	plans = make(map[world.Key]*plan.Service, len(changes))
	amended := func(key world.Key, amend func() bool) bool {
		before := d.Plans[key]
		if !amend() {
			return false
		}
		if now := d.Plans[key]; now != before {
			plans[key] = now
		}
		return true
	}
	var others []world.Key
	for key, c := range changes {
		if !amended(key, func() bool { return m.amendPlan(d, key, c) }) {
			others = append(others, key)
			// What it requests is not given to another Service first.
			missing = missing || c.SpecChanged
		}
	}
	for _, key := range others {
		if missing = missing || !amended(key, func() bool { return m.Amend(d, key, changes[key]) }); missing {
			break
		}
	}
	return plans, !missing
}

// Amend applies the change of one Service to an existing full decision if the change affects no other Service. The
// result is the same as that of a new full decision. If Amend returns false, a new decision must be computed. Until
// then, Topology and Plans stay as they were, and nothing but AmendAll may use the decision.
func (m *State) Amend(d *Decision, key world.Key, c world.Change) bool {
	topology := d.Topology
	if !m.amend(d, key, c) {
		d.Topology = topology
		return false
	}
	return true
}

func (m *State) amend(d *Decision, key world.Key, c world.Change) bool {
	switch {
	case c.SpecChanged:
		return false
	case c.Was == nil && c.Is == nil:
		return true
	case c.Was == nil:
		return m.add(d, c.Is)
	case c.Is == nil:
		return m.remove(d, c.Was)
	}
	return m.change(d, key, c)
}

// amendPlan is Amend for a decision that may lack other changes: those that Amend refused, and those of nodes, pools
// and so on. It handles new endpoints of a Service that has a plan, if the decision contains all earlier changes of
// the Service itself.
//
// The result is that of a full decision if the endpoints had changed before the missing changes. This can happen
// anyway: the API server orders the changes of one object only. The plan has the same addresses and shards as before,
// and depends on nothing else but the Service and the nodes, as the decision knows them. The full decision that
// follows contains everything. What takes or frees an address must wait for it, because a missing change may have an
// older claim to the address.
func (m *State) amendPlan(d *Decision, key world.Key, c world.Change) bool {
	return !c.SpecChanged && c.Was != nil && c.Is != nil && m.planned[key].from == c.Was && m.change(d, key, c)
}

// change amends the decision after a change of the endpoints or of the status. It changes nothing if it returns false.
func (m *State) change(d *Decision, key world.Key, c world.Change) bool {
	if !slices.Equal(c.Was.AssignedHosts, c.Is.AssignedHosts) {
		return false
	}
	shown := !slices.Equal(c.Was.Assigned, c.Is.Assigned)
	if shown && (len(c.Was.Assigned) > 0 || !slices.Equal(c.Is.Assigned, d.Allocation.Services[key].Addrs)) ||
		!m.replan(d, c.Is) {
		return false
	}
	if shown {
		delete(m.grants, key)
	}
	return true
}

func (m *State) add(d *Decision, s *world.Service) bool {
	o, ok := d.Allocation.Add(s)
	// If guards run, an address may be held.
	if !ok || len(m.probing.guards) > 0 && len(o.Addrs) > 0 {
		return false
	}
	if d.Placements.Add(s, d.Allocation) {
		m.computeTopology(d)
	}
	if len(o.Addrs) > 0 {
		m.grants[s.Key] = grant{uid: s.UID, addrs: o.Addrs}
		m.addLeases(d, s.Key, o.Addrs)
	}
	return m.replan(d, s)
}

func (m *State) remove(d *Decision, s *world.Service) bool {
	if !d.Allocation.Remove(s) {
		return false
	}
	if d.Placements.Remove(s) {
		m.computeTopology(d)
	}
	if _, ok := d.budget.Replace(s.Key.Namespace, m.planned[s.Key].demand, plan.Demand{}); !ok {
		return false
	}
	delete(m.grants, s.Key)
	delete(m.planned, s.Key)
	delete(d.Plans, s.Key)
	return true
}
