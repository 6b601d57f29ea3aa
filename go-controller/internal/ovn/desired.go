// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var errAdmitter = errors.New("the ACLs of another Service with the same address could not be written")

// desired holds the latest plans that were passed to Apply. They are those in the results of package loop, which has
// the record of what was accepted; they stay here as well because the rows of a node depend on all plans with backends
// on it, and a change, Configure and drift compute them anew. What OVN has is in the replica of its database.
type desired struct {
	services map[world.Key]*desiredService
	// nodes is an index: it maps each node name to the Services that have backends on it, once each. The requirements of
	// a node's rows are derived from the plans on demand. That is rarely needed, and storing the result would use more
	// memory than anything else in this package.
	nodes map[string][]*desiredService
	// splitPlans caches the backends of wide plans by node while the rows of nodes are computed.
	splitPlans map[*plan.Service]map[string][]rows.ShardBackend
	// dirty contains the nodes whose rows may not match what their backends need, with the Services whose changes they
	// await. If the rows of such a node can't be written, these Services fail and are retried, also one that has left
	// the node.
	dirty map[string]map[world.Key]bool
	// restricted indexes the plans with source ranges. admitting are the Services whose ACLs may have to change because of
	// others, with those others.
	restricted rows.Restricted
	admitting  map[world.Key]map[world.Key]bool
}

// desiredService is a Service with its plan, which is not nil.
type desiredService struct{ plan *plan.Service }

func newDesired() *desired {
	return &desired{services: map[world.Key]*desiredService{}, nodes: map[string][]*desiredService{},
		dirty: map[string]map[world.Key]bool{}, splitPlans: map[*plan.Service]map[string][]rows.ShardBackend{},
		admitting: map[world.Key]map[world.Key]bool{}}
}

// plan returns the plan of a Service, nil if it has none.
func (d *desired) plan(key world.Key) *plan.Service {
	if s := d.services[key]; s != nil {
		return s.plan
	}
	return nil
}

// plans returns all plans.
func (d *desired) plans() iter.Seq[*plan.Service] {
	return func(yield func(*plan.Service) bool) {
		for _, s := range d.services {
			if !yield(s.plan) {
				return
			}
		}
	}
}

// set replaces the plan of a Service (nil for none). The plan must not be modified afterwards.
func (d *desired) set(key world.Key, p *plan.Service) {
	old := d.plan(key)
	if old == p {
		return
	}
	s := d.services[key]
	if s == nil {
		s = &desiredService{}
		d.services[key] = s
	}
	s.plan = p
	if p == nil {
		delete(d.services, key)
		delete(d.admitting, key)
	}
	for _, other := range d.restricted.Replace(old, p) {
		if d.admitting[other] == nil {
			d.admitting[other] = map[world.Key]bool{}
		}
		d.admitting[other][key] = true
	}
	before, after := byNode(old), byNode(p)
	for node, needs := range before {
		if !equalBackends(needs, after[node]) {
			d.markDirty(node, key)
		}
		if after[node] == nil {
			d.removeFromNode(node, s)
		}
	}
	for node := range after {
		if before[node] == nil {
			d.markDirty(node, key)
			d.nodes[node] = append(d.nodes[node], s)
		}
	}
}

// admitters returns the Services whose ACLs have to change because of others and that are not changed themselves. Those
// in before are to be written before the changes, because fragments may then pass from less: otherwise the fragments of
// a Service that joins would pass from what only the others admit. Those in after admit more because Services go or
// leave the address, whose fragments would pass from there as long as they are served.
func (d *desired) admitters(changes []dataplane.Change) (before, after []world.Key) {
	changed := map[world.Key]bool{}
	for _, c := range changes {
		changed[c.Key] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(d.admitting), world.Key.Compare) {
		stays := func(of world.Key) bool { return rows.ShareFragments(d.plan(of), d.plan(key)) }
		switch because := slices.Collect(maps.Keys(d.admitting[key])); {
		case changed[key]:
		case slices.ContainsFunc(because, stays):
			before = append(before, key)
		default:
			after = append(after, key)
		}
	}
	return before, after
}

// recordAdmitters records the results of writing Services, and returns the errors of the changes that require the ACLs
// of other ones. These errors are shown to who has the changed Service, and so do not name the other one, which may be
// in another namespace.
func (d *desired) recordAdmitters(
	ctx context.Context, changes []dataplane.Change, written []world.Key, errs []error,
) map[world.Key]error {
	failed := map[world.Key]error{}
	for i, key := range written {
		if errs[i] == nil {
			delete(d.admitting, key)
			continue
		}
		for _, c := range changes {
			if d.admitting[key][c.Key] {
				klog.FromContext(ctx).Error(errs[i], "Failed to write ACLs for a Service that shares an address",
					"service", key.String(), "for", c.Key.String())
				failed[c.Key] = errAdmitter
			}
		}
	}
	return failed
}

// markDirty records that the rows of a node have to be written, because of the given Services if any.
func (d *desired) markDirty(node string, keys ...world.Key) {
	if d.dirty[node] == nil {
		d.dirty[node] = map[world.Key]bool{}
	}
	for _, key := range keys {
		d.dirty[node][key] = true
	}
}

// removeFromNode removes a Service from a node.
func (d *desired) removeFromNode(node string, s *desiredService) {
	rest := slices.DeleteFunc(d.nodes[node], func(of *desiredService) bool { return of == s })
	if d.nodes[node] = rest; len(rest) == 0 {
		delete(d.nodes, node)
	}
}

// byNode returns the backends of a plan by node, including duplicates.
func byNode(p *plan.Service) map[string][]rows.ShardBackend {
	if p == nil {
		return nil
	}
	n := map[string]int{}
	rows.ForEachBackend(p, func(node string, _ rows.ShardBackend) { n[node]++ })
	all := make(map[string][]rows.ShardBackend, len(n))
	rows.ForEachBackend(p, func(node string, b rows.ShardBackend) {
		list := all[node]
		if list == nil {
			list = make([]rows.ShardBackend, 0, n[node])
		}
		all[node] = append(list, b)
	})
	return all
}

// equalBackends reports whether two lists have the same backends, ignoring duplicates.
func equalBackends(a, b []rows.ShardBackend) bool {
	if slices.Equal(a, b) {
		return true
	}
	distinct := func(list []rows.ShardBackend) []rows.ShardBackend {
		return slices.Compact(slices.SortedFunc(slices.Values(list), rows.ShardBackend.Compare))
	}
	return slices.Equal(distinct(a), distinct(b))
}

// wideBackends is the number of backends and listeners from which on a plan is split by node once for all nodes,
// instead of being scanned for each node, which would be quadratic. Splitting all plans would use more memory than
// anything else in this package.
const wideBackends = 2000

// backendsOn returns the backends on a node, including duplicates across plans.
func (d *desired) backendsOn(node string) (backends []rows.ShardBackend) {
	for _, s := range d.nodes[node] {
		p := s.plan
		if isWide(p) {
			if d.splitPlans[p] == nil {
				d.splitPlans[p] = byNode(p)
			}
			if backends == nil {
				backends = slices.Clip(d.splitPlans[p][node])
			} else {
				backends = append(backends, d.splitPlans[p][node]...)
			}
			continue
		}
		rows.ForEachBackend(p, func(of string, b rows.ShardBackend) {
			if of == node {
				backends = append(backends, b)
			}
		})
	}
	return backends
}

func isWide(p *plan.Service) bool {
	n := 0
	for i := range p.Listeners {
		if n += 1 + len(p.Listeners[i].Backends) + len(p.Listeners[i].Draining); n >= wideBackends {
			return true
		}
	}
	return false
}

// hasBackends reports whether a Service has backends on a node.
func hasBackends(p *plan.Service, node string) (yes bool) {
	rows.ForEachBackend(p, func(of string, _ rows.ShardBackend) { yes = yes || of == node })
	return yes
}

// brokenFor returns the errors of the nodes that a change needs: those with backends, and those that had some before.
// A Service that is being removed may have needed any node.
func (d *desired) brokenFor(c dataplane.Change, broken map[string]error) error {
	var errs []error
	for name, err := range broken {
		if c.Want == nil || hasBackends(c.Want, name) || d.dirty[name][c.Key] {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
