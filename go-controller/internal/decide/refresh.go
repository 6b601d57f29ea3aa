// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// firstRefresh is the time between the first two refreshes of a Service's status. The time doubles up to lastRefresh,
	// because each refresh briefly removes the Service's flows from the bridges.
	firstRefresh = 10 * time.Second
	lastRefresh  = 10 * time.Minute
	// refreshTime is how long a rewrite may take to be stored, and a Service's flows to be repaired by two rewrites. It is
	// longer if many Services are rewritten at once, by a second for each rewritesPerSecond.
	refreshTime       = 30 * time.Second
	rewritesPerSecond = 10
)

// refresh is a rewrite of a Service's status that makes OVN-Kubernetes recompute the Service's flows.
type refresh struct {
	// uid is that of the Service. Another one of the same name has a refresh of its own.
	uid string
	// lists reports whether the status must list the Service's ports. The value itself has no meaning; OVN-Kubernetes
	// reacts to the change.
	lists bool
	// next is when the status may be rewritten again. wait is the delay after that.
	next time.Time
	wait time.Duration
	// writtenBy is when the last rewrite must be in the status, and repairedBy when no flow may be stale any more.
	writtenBy, repairedBy time.Time
	// repaired means that no flow was stale in the last pass.
	repaired bool
}

// isOver reports whether the delay after a rewrite that is in the status of a Service is over.
func (r refresh) isOver(s *world.Service, now time.Time) bool {
	return r.lists == s.ListsPorts && now.After(r.next.Add(r.wait))
}

// refreshes holds the refresh of each Service with stale flows, and for a while of those that had some. It knows only
// what this process has rewritten: after a restart, each Service has the full time again.
type refreshes map[world.Key]refresh

// of returns the refresh of a Service, and whether it has one.
func (r refreshes) of(s *world.Service) (refresh, bool) {
	last, was := r[s.Key]
	if was && last.uid == s.UID {
		return last, true
	}
	return refresh{}, false
}

// isLate reports whether the last rewrite should be in the status of a Service by now and is not.
func (r refresh) isLate(s *world.Service, now time.Time) bool {
	return r.lists != s.ListsPorts && !now.Before(r.writtenBy)
}

// addHopeless adds the addresses to a snapshot whose refresh has failed: their stale flows alone do not count against
// gateways (place.Layout), but refreshes go on. There is nothing to reset if the spec of a Service changes: then
// OVN-Kubernetes recomputes its flows, and a rewrite that can be stored again is in the status.
func (r refreshes) addHopeless(w *world.Snapshot) {
	if len(r) == 0 {
		return
	}
	w.NotRewritten, w.NotRepaired = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, s := range w.Services {
		last, was := r.of(s)
		var hopeless map[netip.Addr]bool
		switch {
		case !was:
			continue
		case last.isLate(s, w.Now):
			hopeless = w.NotRewritten
		case !last.repaired && !w.Now.Before(last.repairedBy):
			hopeless = w.NotRepaired
		default:
			continue
		}
		for _, a := range place.Refreshable(s) {
			hopeless[a] = true
		}
	}
}

// Refresh is a status that is rewritten so that OVN-Kubernetes recomputes flows.
type Refresh struct {
	Service   world.Key
	ListPorts bool
	// Next is when the status may be rewritten again.
	Next time.Time
}

// decide schedules status refreshes for Services for which the bridge of a gateway has a stale flow. It returns those
// that start now, and the time when the next refresh may be due, or the zero time if none is.
func (r refreshes) decide(d *Decision) (started []Refresh, due time.Time) {
	stale := d.Layout.Stale(d.World)
	maps.DeleteFunc(r, func(k world.Key, _ refresh) bool { _, known := d.Allocation.Services[k]; return !known })
	var affected []*world.Service
	for _, s := range d.World.Services {
		if slices.ContainsFunc(place.Refreshable(s), func(a netip.Addr) bool { return stale[a] }) {
			affected = append(affected, s)
			continue
		}
		if last, was := r.of(s); was && !last.isOver(s, d.World.Now) {
			// Keep the delay for a while, so that alternating reports do not cause a storm of writes.
			last.repaired = true
			r[s.Key] = last
		} else {
			delete(r, s.Key)
		}
	}
	now, deadline := d.World.Now, d.World.Now.Add(refreshTime+time.Duration(len(affected)/rewritesPerSecond)*time.Second)
	for _, s := range affected {
		last, was := r.of(s)
		if !was || last.repaired && last.isOver(s, now) {
			last = refresh{uid: s.UID, lists: s.ListsPorts, wait: firstRefresh, repairedBy: deadline}
		}
		// A flow that is stale anew has the full time again, and flows may be repaired once a late rewrite is written.
		if last.repaired || last.isLate(s, now) {
			last.repairedBy = deadline
		}
		last.repaired = false
		if last.lists == s.ListsPorts && !now.Before(last.next) {
			last.lists, last.next, last.wait = !s.ListsPorts, now.Add(last.wait), min(2*last.wait, lastRefresh)
			last.writtenBy = deadline
			started = append(started, Refresh{Service: s.Key, ListPorts: last.lists, Next: last.next})
		}
		r[s.Key] = last
		due = world.Earliest(due, last.due(s, now))
	}
	return started, due
}

// due returns when the refresh of a Service with stale flows needs another pass.
func (r refresh) due(s *world.Service, now time.Time) time.Time {
	at := r.next
	if !at.After(now) { // the last rewrite is not in the status yet
		at = now.Add(r.wait)
	}
	if r.isLate(s, now) {
		return at
	}
	deadlines := []time.Time{r.repairedBy}
	if r.lists != s.ListsPorts {
		deadlines = append(deadlines, r.writtenBy)
	}
	for _, deadline := range deadlines {
		if deadline.After(now) {
			at = world.Earliest(at, deadline)
		}
	}
	return at
}

// ListsPorts reports whether the status of a Service must list its ports.
func (d *Decision) ListsPorts(s *world.Service) bool {
	if last, ok := d.refreshes.of(s); ok {
		return last.lists
	}
	return s.ListsPorts
}
