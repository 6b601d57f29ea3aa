// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// amend applies the change of one Service to an existing full decision if the change affects no other Service. The
// result is the same as that of a new full decision. If amend returns false, the decision is no longer usable and a
// new one must be computed.
func (m *state) amend(d *decision, key world.Key, c kube.Change) bool {
	switch {
	case c.SpecChanged:
		return false
	case c.Was == nil && c.Is == nil:
		return true
	case c.Was == nil:
		return m.admit(d, c.Is)
	case c.Is == nil:
		return m.dismiss(d, c.Was)
	}
	if !slices.Equal(c.Was.Assigned, c.Is.Assigned) {
		if len(c.Was.Assigned) > 0 || !slices.Equal(c.Is.Assigned, d.allocation.Services[key].Addrs) {
			return false
		}
		delete(m.grants, key)
	}
	m.plan(d, c.Is)
	return true
}

func (m *state) admit(d *decision, s *world.Service) bool {
	o, ok := d.allocation.Admit(s)
	// If guards run, an address may be held.
	if !ok || len(m.probation.guards) > 0 && len(o.Addrs) > 0 {
		return false
	}
	if d.placements.Add(s, d.allocation) {
		d.computeFabric()
	}
	if len(o.Addrs) > 0 {
		m.grants[s.Key] = grant{uid: s.UID, addrs: o.Addrs}
		m.lease(d, s.Key, o.Addrs)
	}
	m.plan(d, s)
	return true
}

func (m *state) dismiss(d *decision, s *world.Service) bool {
	if !d.allocation.Dismiss(s) {
		return false
	}
	if d.placements.Remove(s) {
		d.computeFabric()
	}
	delete(m.grants, s.Key)
	delete(m.planned, s.Key)
	delete(d.plans, s.Key)
	return true
}
