// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Amend applies the change of one Service to an existing full decision if the change affects no other Service. The
// result is the same as that of a new full decision. If Amend returns false, the decision is no longer usable and a
// new one must be computed.
func (m *State) Amend(d *Decision, key world.Key, c world.Change) bool {
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
	if !slices.Equal(c.Was.AssignedHosts, c.Is.AssignedHosts) {
		return false
	}
	if !slices.Equal(c.Was.Assigned, c.Is.Assigned) {
		if len(c.Was.Assigned) > 0 || !slices.Equal(c.Is.Assigned, d.Allocation.Services[key].Addrs) {
			return false
		}
		delete(m.grants, key)
	}
	return m.replan(d, c.Is)
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
