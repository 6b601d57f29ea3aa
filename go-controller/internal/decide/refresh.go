// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// firstRefresh is the time between the first two refreshes of a Service's status. The time doubles up to lastRefresh,
	// because each refresh briefly removes the Service's flows from the bridges.
	firstRefresh = 10 * time.Second
	lastRefresh  = 10 * time.Minute
)

// refresh is a rewrite of a Service's status that makes OVN-Kubernetes recompute the Service's flows.
type refresh struct {
	// lists reports whether the status must list the Service's ports. The value itself has no meaning; OVN-Kubernetes
	// reacts to the change.
	lists bool
	// next is when the status may be rewritten again. wait is the delay after that.
	next time.Time
	wait time.Duration
}

// refreshes holds the refresh of each Service with stale flows.
type refreshes map[world.Key]refresh

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
	for _, s := range d.World.Services {
		last, was := r[s.Key]
		if !slices.ContainsFunc(d.Layout.Refreshable(s), func(a netip.Addr) bool { return stale[a] }) {
			// Keep the delay for a while, so that alternating reports do not cause a storm of writes.
			if was && last.lists == s.ListsPorts && d.World.Now.After(last.next.Add(last.wait)) {
				delete(r, s.Key)
			}
			continue
		}
		if !was {
			last = refresh{lists: s.ListsPorts, wait: firstRefresh}
		}
		if last.lists == s.ListsPorts && !d.World.Now.Before(last.next) {
			last.lists, last.next, last.wait = !s.ListsPorts, d.World.Now.Add(last.wait), min(2*last.wait, lastRefresh)
			started = append(started, Refresh{Service: s.Key, ListPorts: last.lists, Next: last.next})
		}
		r[s.Key] = last
		at := last.next
		if !at.After(d.World.Now) { // the last rewrite is not in the status yet
			at = d.World.Now.Add(firstRefresh)
		}
		due = world.Earliest(due, at)
	}
	return started, due
}

// ListsPorts reports whether the status of a Service must list its ports.
func (d *Decision) ListsPorts(s *world.Service) bool {
	if last, ok := d.refreshes[s.Key]; ok {
		return last.lists
	}
	return s.ListsPorts
}
