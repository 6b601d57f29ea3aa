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
	if len(s.Assigned)+len(s.AssignedHosts) == 0 {
		return s.Given, false
	}
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

// isCleared reports whether the status names addresses that we allocated, and its ingress is empty.
func isCleared(s *world.Service) bool {
	return len(s.Given) > 0 && len(s.Assigned) == 0 && len(s.AssignedHosts) == 0
}

// couldBeGiven reports whether a pool would allocate an address to the Service if the pool were open, the address
// free and no host outside of the cluster answered for it.
func (t *twin) couldBeGiven(s *world.Service, a netip.Addr) bool {
	u := t.withPools(func(p *world.Pool) { p.Disabled, p.Problems = false, nil })
	u.w.Conflicts = nil
	return u.givable(s, a)
}

// withPools returns the same snapshot with pools that are edited.
func (t *twin) withPools(edit func(*world.Pool)) *twin {
	w := *t.w
	w.Pools = nil
	for _, p := range t.w.Pools {
		edited := *p
		edit(&edited)
		w.Pools = append(w.Pools, &edited)
	}
	return &twin{w: &w}
}

func (t *twin) inScope(a netip.Addr, x, y *world.Service) bool {
	had := func(s *world.Service) bool {
		return slices.Contains(s.Assigned, a) || slices.Contains(t.w.Granted[s.Key], a) || slices.Contains(t.ownBefore(s), a)
	}
	cleared := func(s *world.Service) bool { return isCleared(s) && slices.Contains(s.Given, a) && !had(s) }
	p := t.inPool(a)
	return x.Key.Namespace == y.Key.Namespace || p != nil && p.SharedByCluster || had(x) && had(y) ||
		cleared(x) && cleared(y)
}

func (t *twin) ownBefore(s *world.Service) []netip.Addr {
	return slices.Concat(t.w.HeldExternalIPs[s.Key], s.HeldExternalIPs)
}

// reserveExternals keeps addresses that Services no longer list from others as long as their statuses show them.
func (t *twin) reserveExternals(services []*world.Service) {
	for _, s := range services {
		for _, a := range s.HeldExternalIPs {
			if !slices.Contains(s.ExternalIPs, a) && len(t.holder[a]) == 0 {
				t.reserve(s, a)
			}
		}
	}
}

// listedIn reports whether a Service of a namespace has an address through spec.externalIPs, or had it according to
// what is known of the last decisions.
func (t *twin) listedIn(a netip.Addr, namespace string) bool {
	return slices.ContainsFunc(t.w.Services, func(s *world.Service) bool {
		return s.Key.Namespace == namespace && slices.Contains(append(t.ownBefore(s), t.heldExternals[s.Key]...), a)
	})
}

// keepExternals lets Services keep the addresses of spec.externalIPs that they owned before (kept), whether they are
// served now (won) or not.
func (t *twin) keepExternals(services []*world.Service, kept, won listing) {
	for _, s := range services {
		for _, a := range s.ExternalIPs {
			if slices.Contains(t.ownBefore(s), a) && t.keeps(s, a) {
				won.put(s, a, t.answers(s, a))
				t.take(s, a)
				kept.put(s, a, true)
			}
		}
	}
}

// winExternals gives Services the other addresses of spec.externalIPs that they may have.
func (t *twin) winExternals(services []*world.Service, kept, won listing) {
	for _, s := range services {
		for _, a := range s.ExternalIPs {
			if !kept[s.Key][a] && t.mayOwn(s, a) {
				t.take(s, a)
				won.put(s, a, true)
				kept.put(s, a, true)
			}
		}
	}
}

// listing are addresses that Services list.
type listing map[world.Key]map[netip.Addr]bool

func (l listing) put(s *world.Service, a netip.Addr, is bool) {
	if l[s.Key] == nil {
		l[s.Key] = map[netip.Addr]bool{}
	}
	l[s.Key][a] = is
}

func (l listing) inOrder(services []*world.Service) map[world.Key][]netip.Addr {
	out := map[world.Key][]netip.Addr{}
	for _, s := range services {
		for _, a := range s.ExternalIPs {
			if l[s.Key][a] {
				out[s.Key] = append(out[s.Key], a)
			}
		}
	}
	return out
}

// keeps reports whether an address of spec.externalIPs stays with the Service that owned it before.
func (t *twin) keeps(s *world.Service, a netip.Addr) bool {
	waiter := t.waitsFor(a)
	return t.allocated[s.Key][world.FamilyOf(a)] == a || t.fits(s, a) && (waiter == (world.Key{}) || waiter == s.Key)
}

// answers reports whether an address of spec.externalIPs that the Service keeps is served: whether a new one would
// be if the pools served every Service.
func (t *twin) answers(s *world.Service, a netip.Addr) bool {
	return servesExternals(t.inPool(a)) && (t.allocated[s.Key][world.FamilyOf(a)] == a ||
		t.withPools(func(p *world.Pool) { p.Admission = nil }).withoutNodes().couldBeGiven(s, a))
}

// withoutNodes returns the same snapshot without what nodes report of themselves, and without EgressIPs.
func (t *twin) withoutNodes() *twin {
	w := *t.w
	w.Nodes, w.EgressIPs = nil, nil
	return &twin{w: &w}
}

func servesExternals(p *world.Pool) bool { return p != nil && p.ExternalIPs && len(p.Problems) == 0 }

func (t *twin) mayOwn(s *world.Service, a netip.Addr) bool {
	p := t.inPool(a)
	switch {
	case !servesExternals(p):
		return false
	case t.allocated[s.Key][world.FamilyOf(a)] == a:
		return true
	}
	waiter := t.cooldownFor(a)
	coolsDown := len(waiter) > 0 && !slices.Contains(waiter, s.Key)
	return t.couldBeGiven(s, a) && !coolsDown && t.fits(s, a) && t.pays(p, s, a)
}

// pays reports whether the quota of a pool allows one more address, or the namespace has it, or will until no status
// shows it.
func (t *twin) pays(p *world.Pool, s *world.Service, a netip.Addr) bool {
	has := t.leavesBehind(s.Key.Namespace)[a] ||
		slices.ContainsFunc(t.keepers(a), func(o *world.Service) bool { return o.Key.Namespace == s.Key.Namespace })
	return p.Quota == 0 || has || t.spent(p, s.Key.Namespace) < p.Quota
}

// adopt lets a Service keep its addresses to which it has the claim: "given" by us according to the status, "shown" by
// it, "granted" and not in it, or "cleared" by another client. foreign reports whether the status is another
// controller's.
func (t *twin) adopt(s *world.Service, claim string, has map[world.Family]netip.Addr) (foreign bool) {
	addrs, held := t.w.Granted[s.Key]
	if !held {
		addrs, foreign = t.ownOf(s)
	}
	for _, a := range addrs {
		f, is := world.FamilyOf(a), "cleared"
		if held {
			is = "granted"
		}
		if slices.Contains(s.Assigned, a) {
			is = "shown"
			if slices.Contains(s.Given, a) {
				is = "given"
			}
		}
		if is == claim && slices.Contains(wants(s), f) && !has[f].IsValid() && t.fits(s, a) {
			t.take(s, a)
			has[f] = a
		}
	}
	return foreign
}
