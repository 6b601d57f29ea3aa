// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// This file is the part of the twin that computes which pools serve a Service, and in which order.

// admits checks the fields one by one.
func admits(p *world.Pool, s *world.Service) bool {
	a := p.Admission
	if a == nil {
		return true
	}
	if !a.AnyNamespace && !slices.Contains(a.Namespaces, s.Key.Namespace) {
		return false
	}
	for _, selector := range a.Services {
		all := true
		for _, r := range selector {
			value, has := s.Labels[r.Key]
			switch {
			case len(r.Values) == 0:
				all = all && has != r.Not
			case r.Not:
				all = all && (!has || !slices.Contains(r.Values, value))
			default:
				all = all && has && slices.Contains(r.Values, value)
			}
		}
		if all {
			return true
		}
	}
	return len(a.Services) == 0
}

// isAnnounced reports whether an object announces a pool, or will once nodes and routers do their part.
func (t *twin) isAnnounced(p *world.Pool) bool {
	return slices.ContainsFunc(t.w.Domains, func(d *world.Domain) bool {
		return len(d.Problems) == 0 && slices.Contains(d.Pools, p.Name)
	}) || slices.ContainsFunc(t.w.Advertisements, func(a *world.Advertisement) bool {
		return !a.ByGateway && !world.Fatal(a.Findings) && (a.EveryPool || slices.Contains(a.Pools, p.Name))
	})
}

// later reports whether pool b is tried before pool a.
func (t *twin) later(a, b *world.Pool) bool {
	class := func(p *world.Pool) int {
		switch {
		case p.Admission == nil:
			return 2
		case p.Admission.Priority == 0:
			return 1
		}
		return 0
	}
	if class(a) != class(b) {
		return class(a) > class(b)
	}
	if class(a) == 0 && a.Admission.Priority != b.Admission.Priority {
		return a.Admission.Priority > b.Admission.Priority
	}
	if t.isAnnounced(a) != t.isAnnounced(b) {
		return t.isAnnounced(b)
	}
	return a.Name > b.Name
}

func (t *twin) inTurn(a, b *world.Pool) int {
	if t.later(a, b) {
		return 1
	}
	return -1
}

func gives(p *world.Pool) bool { return p != nil && !p.Disabled && len(p.Problems) == 0 }

func (t *twin) pools(s *world.Service, gets map[world.Family]netip.Addr) []*world.Pool {
	if s.RequestedPool != "" {
		if p := t.named(s.RequestedPool); gives(p) && admits(p, s) {
			return []*world.Pool{p}
		}
		return nil
	}
	var list []*world.Pool
	for _, f := range wants(s) {
		p := t.inPool(gets[f])
		if gives(p) && admits(p, s) && (p.AutoAssign || slices.Contains(s.Requested, gets[f]) ||
			t.waitsFor(gets[f]) == s.Key) {
			list = append(list, p)
		}
	}
	for _, p := range slices.SortedFunc(slices.Values(t.w.Pools), t.inTurn) {
		if gives(p) && admits(p, s) && p.AutoAssign {
			list = append(list, p)
		}
	}
	return list
}

func suspends(w *world.Snapshot) bool {
	return w.Cluster.Switch.Mode == world.Disabled || len(w.Cluster.AutoAssignCIDRs) > 0
}
