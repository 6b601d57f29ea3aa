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
}

// AmendAll applies changes of Services to an existing decision. If missing is set, the decision lacks earlier changes,
// of Services or of other objects.
func (m *State) AmendAll(d *Decision, changes map[world.Key]world.Change, missing bool) Amendment {
	a := Amendment{Plans: make(map[world.Key]*plan.Service, len(changes)), Later: map[world.Key]world.Change{}}
	amended := func(key world.Key, amend func() bool) bool {
		before := d.Plans[key]
		if !amend() {
			return false
		}
		if now := d.Plans[key]; now != before {
			a.Plans[key] = now
		}
		return true
	}
	var others []world.Key
	work := 0
	for _, key := range m.leastWorkFirst(changes) {
		c := changes[key]
		if !m.replansOnly(key, c) {
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
			e := m.change(d, key, c, inAdvance)
			missing = missing || e == inAdvance
			return e != none
		}) {
			others = append(others, key)
		}
		work += m.planned[key].demand.Work()
	}
	for _, key := range others {
		if missing = missing || !amended(key, func() bool { return m.Amend(d, key, changes[key]) }); missing {
			break
		}
	}
	a.Incomplete = missing
	return a
}

// leastWorkFirst returns the keys of changes, those of the namespaces first in which less must be planned anew.
func (m *State) leastWorkFirst(changes map[world.Key]world.Change) []world.Key {
	work := map[string]int{}
	keys := make([]world.Key, 0, len(changes))
	for key := range changes {
		keys = append(keys, key)
		work[key.Namespace] += m.planned[key].demand.Work()
	}
	slices.SortFunc(keys, func(a, b world.Key) int {
		return cmp.Or(cmp.Compare(work[a.Namespace], work[b.Namespace]), a.Compare(b))
	})
	return keys
}

// effect is what a change does to a decision.
type effect uint8

const (
	// none: the change needs a full decision.
	none effect = iota
	// inAdvance: the decision contains the change, but a full one may give the Service or others something else.
	inAdvance
	// complete: a full decision would have the same result.
	complete
)

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
	return m.change(d, key, c, complete) == complete
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
func (m *State) replansOnly(key world.Key, c world.Change) bool {
	return !c.SpecChanged && c.Was != nil && c.Is != nil && m.planned[key].from == c.Was
}

// change amends the decision after a change of the endpoints or of the status. It changes nothing if the effect would
// be less than that.
func (m *State) change(d *Decision, key world.Key, c world.Change, least effect) effect {
	if !slices.Equal(c.Was.AssignedHosts, c.Is.AssignedHosts) {
		return none
	}
	shown := !slices.Equal(c.Was.Assigned, c.Is.Assigned)
	if shown && (len(c.Was.Assigned) > 0 || !slices.Equal(c.Is.Assigned, d.Allocation.Services[key].Addrs)) {
		return none
	}
	e := m.replan(d, c.Is, least)
	if shown && e != none {
		delete(m.grants, key)
	}
	return e
}

// replan plans a Service anew after a change that affects no other one, unless the change of its demand does. It
// changes nothing if the effect would be less than that.
func (m *State) replan(d *Decision, s *world.Service, least effect) effect {
	last := m.planned[s.Key]
	demand, excess, e := m.demand(d, s), last.excess(), complete
	if demand != last.demand {
		var ok bool
		if excess, ok = d.budget.Replace(s.Key.Namespace, last.demand, demand); !ok {
			if least == complete || last.excess().Limit != plan.NoLimit {
				return none
			}
			if excess, ok = d.budget.Advance(s.Key.Namespace, last.demand, demand); !ok {
				return none
			}
			e = inAdvance
		}
	}
	m.plan(d, s, demand, excess)
	return e
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
	return m.replan(d, s, complete) == complete
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
