// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// This file is the part of the twin for ownership: what another controller wrote into a status, which Service owns an
// address of spec.externalIPs, and which Services may share across namespaces.

// ownOf returns the addresses of a Service according to its status, and whether all of them belong to another
// controller.
func (t *twin) ownOf(s *world.Service) (own []netip.Addr, foreign bool) {
	ours := s.NamesClass
	for _, a := range s.Assigned {
		given := slices.Contains(s.Given, a)
		ours = ours || given
		if given || t.couldBeGiven(s, a) {
			own = append(own, a)
		}
	}
	if !ours && len(own) < len(s.Assigned)+len(s.AssignedHosts) {
		return nil, true
	}
	return own, false
}

// couldBeGiven reports whether a pool would allocate an address to the Service if the pool were open, the address
// free and no host outside of the cluster answered for it.
func (t *twin) couldBeGiven(s *world.Service, a netip.Addr) bool {
	w := *t.w
	w.Pools, w.Conflicts = nil, nil
	for _, p := range t.w.Pools {
		open := *p
		open.Disabled, open.Problems = false, nil
		w.Pools = append(w.Pools, &open)
	}
	return (&twin{w: &w}).givable(s, a)
}

func (t *twin) inScope(a netip.Addr, x, y *world.Service) bool {
	had := func(s *world.Service) bool {
		return slices.Contains(s.Assigned, a) || slices.Contains(t.held[s.Key], a) || slices.Contains(t.ownBefore(s), a)
	}
	p := t.inPool(a)
	return x.Key.Namespace == y.Key.Namespace || p != nil && p.SharedByCluster || had(x) && had(y)
}

func (t *twin) ownBefore(s *world.Service) []netip.Addr {
	if newer, ok := t.w.HeldExternalIPs[s.Key]; ok {
		return newer
	}
	return s.HeldExternalIPs
}

// winExternals gives Services the addresses of spec.externalIPs that they may have: those that they owned before, or
// the others.
func (t *twin) winExternals(services []*world.Service, won map[world.Key]map[netip.Addr]bool, before bool) {
	for _, s := range services {
		for _, a := range s.ExternalIPs {
			if slices.Contains(t.ownBefore(s), a) != before || !t.mayOwn(s, a) {
				continue
			}
			t.take(s, a)
			if won[s.Key] == nil {
				won[s.Key] = map[netip.Addr]bool{}
			}
			won[s.Key][a] = true
		}
	}
}

func inOrderOfListing(services []*world.Service, won map[world.Key]map[netip.Addr]bool) map[world.Key][]netip.Addr {
	out := map[world.Key][]netip.Addr{}
	for _, s := range services {
		for _, a := range s.ExternalIPs {
			if won[s.Key][a] {
				out[s.Key] = append(out[s.Key], a)
			}
		}
	}
	return out
}

func (t *twin) mayOwn(s *world.Service, a netip.Addr) bool {
	p := t.inPool(a)
	switch {
	case p == nil || !p.ExternalIPs || len(p.Problems) > 0:
		return false
	case slices.Contains(t.holder[a], s):
		return true
	}
	waiter := t.cooldownFor(a)
	coolsDown := len(waiter) > 0 && !slices.Contains(waiter, s.Key)
	return t.couldBeGiven(s, a) && !coolsDown && t.fits(s, a) && t.pays(p, s, a)
}

// pays reports whether the quota of a pool allows one more address.
func (t *twin) pays(p *world.Pool, s *world.Service, a netip.Addr) bool {
	shares := slices.ContainsFunc(t.holder[a], func(o *world.Service) bool { return o.Key.Namespace == s.Key.Namespace })
	spent := 0
	for b, holders := range t.holder {
		if t.inPool(b) == p && slices.ContainsFunc(holders, func(o *world.Service) bool {
			return o.Key.Namespace == s.Key.Namespace
		}) {
			spent++
		}
	}
	return p.Quota == 0 || shares || spent < p.Quota
}
