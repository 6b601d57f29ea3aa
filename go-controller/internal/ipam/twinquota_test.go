// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// reserve keeps an address that the status of a Service shows from others.
func (t *twin) reserve(s *world.Service, a netip.Addr) {
	if !slices.Contains(t.holder[a], s) {
		t.take(s, a)
		t.reserved[a] = append(t.reserved[a], s)
	}
}

// keepers returns the holders of an address that will have it once all statuses are written.
func (t *twin) keepers(a netip.Addr) []*world.Service {
	return slices.DeleteFunc(t.stay(a), func(s *world.Service) bool { return slices.Contains(t.reserved[a], s) })
}

// stay returns the holders of an address that have not got another one for it.
func (t *twin) stay(a netip.Addr) []*world.Service {
	exchanged := func(s *world.Service) bool { return slices.Contains(t.exchanged[a], s) }
	return slices.DeleteFunc(slices.Clone(t.holder[a]), exchanged)
}

// spent counts the addresses of a pool that a namespace has, or has had as long as a status shows it.
func (t *twin) spent(p *world.Pool, namespace string) int {
	n := 0
	of := func(o *world.Service) bool { return o.Key.Namespace == namespace }
	for a := range t.holder {
		if t.inPool(a) == p && slices.ContainsFunc(t.stay(a), of) {
			n++
		}
	}
	for a := range t.leavesBehind(namespace) {
		if t.inPool(a) == p && !slices.ContainsFunc(t.stay(a), of) {
			n++
		}
	}
	return n
}

// leavesBehind returns the addresses in statuses of Services of a namespace that are no longer served.
func (t *twin) leavesBehind(namespace string) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for a, key := range t.w.Leaving {
		out[a] = out[a] || key.Namespace == namespace
	}
	for key, addrs := range t.w.LeavingShared {
		for _, a := range addrs {
			out[a] = out[a] || key.Namespace == namespace
		}
	}
	maps.DeleteFunc(out, func(_ netip.Addr, of bool) bool { return !of })
	return out
}

// affords reports whether the quota allows a Service that had some addresses and gets others to take more from the
// pool. What replaces an address is free, unless it is new to the namespace and the Service is giving up others.
func (t *twin) affords(p *world.Pool, s *world.Service, had, gets map[world.Family]netip.Addr, more int) bool {
	neighbour := func(o *world.Service) bool { return o.Key.Namespace == s.Key.Namespace }
	spent, leaving, isNew := t.spent(p, s.Key.Namespace), t.leavesBehind(s.Key.Namespace), more > 0
	for _, f := range wants(s) {
		listed := t.listedIn(had[f], s.Key.Namespace)
		remains := func(o *world.Service) bool { return neighbour(o) && (o != s || listed) }
		if had[f] != gets[f] && t.inPool(had[f]) == p && !leaving[had[f]] && !slices.ContainsFunc(t.stay(had[f]), remains) {
			more--
		}
		if had[f] != gets[f] && t.inPool(gets[f]) == p && !leaving[gets[f]] &&
			!slices.ContainsFunc(t.keepers(gets[f]), neighbour) {
			more++
		}
		if had[f] != gets[f] && t.inPool(gets[f]) == p && !leaving[gets[f]] &&
			!slices.ContainsFunc(t.stay(gets[f]), neighbour) {
			isNew = true
		}
	}
	givesUp := false
	for a, by := range t.reserved {
		givesUp = givesUp || t.inPool(a) == p && slices.Contains(by, s)
	}
	return p.Quota == 0 || more <= 0 && (!isNew || !givesUp) || spent+more <= p.Quota
}
