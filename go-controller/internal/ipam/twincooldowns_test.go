// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// This file is the part of the twin that computes which addresses are in cooldown. The times in its snapshots have no
// fractions of a second.

// startCooldowns returns the leases of addresses in cooldown: pool by pool, the latest first. A namespace has as many
// addresses as its quota at most.
func (t *twin) startCooldowns() {
	for _, p := range slices.SortedFunc(slices.Values(t.w.Pools), t.inTurn) {
		var list []world.Lease
		for _, l := range p.Leases {
			if l.Released.IsZero() || l.Released.After(t.w.Now) {
				l.Released = t.w.Now
			}
			if t.inPool(l.Addr) == p && t.holder[l.Addr] == nil && t.w.Now.Sub(l.Released) < p.ReuseDelay {
				list = append(list, l)
			}
		}
		list = byRelease(list)
		kept := map[string]map[netip.Addr]bool{}
		for _, l := range list {
			of := kept[l.Service.Namespace]
			if p.Quota > 0 && len(of) == p.Quota && !of[l.Addr] {
				continue
			}
			if of == nil {
				of = map[netip.Addr]bool{}
				kept[l.Service.Namespace] = of
			}
			of[l.Addr] = true
			t.cooldowns = append(t.cooldowns, l)
		}
	}
}

func byRelease(list []world.Lease) []world.Lease {
	return slices.SortedFunc(slices.Values(list), func(a, b world.Lease) int {
		switch {
		case !a.Released.Equal(b.Released):
			return b.Released.Compare(a.Released)
		case a.Addr != b.Addr:
			return a.Addr.Compare(b.Addr)
		}
		return a.Service.Compare(b.Service)
	})
}

// cooldownFor returns the Services for which an address is in cooldown. There are none if it is not (any more).
func (t *twin) cooldownFor(a netip.Addr) []world.Key {
	var waiter []world.Key
	for _, l := range t.cooldowns {
		if l.Addr == a && t.holder[a] == nil {
			waiter = append(waiter, l.Service)
		}
	}
	return waiter
}

// reclaim gives a Service addresses that are in cooldown for it, and returns the families that are still missing.
func (t *twin) reclaim(s *world.Service, has, gets map[world.Family]netip.Addr, missing []world.Family,
	pools []*world.Pool) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		for _, l := range t.cooldowns {
			p, waiter := t.inPool(l.Addr), t.waitsFor(l.Addr)
			with := maps.Clone(gets)
			with[f] = l.Addr
			given := waiter == (world.Key{}) && slices.Contains(t.freeAddrs(p, f), l.Addr) || waiter == s.Key &&
				t.givable(s, l.Addr)
			if l.Service == s.Key && t.holder[l.Addr] == nil && world.FamilyOf(l.Addr) == f && given &&
				slices.Contains(pools, p) && t.affords(p, s, has, with, 0) {
				gets[f] = l.Addr
				return true
			}
		}
		return false
	})
}

// use adds the cooldowns of a pool to its usage.
func (t *twin) use(p *world.Pool, u *ipam.PoolUsage) {
	released := map[netip.Addr]time.Time{}
	for _, l := range slices.Backward(t.cooldowns) {
		if t.inPool(l.Addr) == p {
			released[l.Addr] = l.Released
		}
	}
	for a, r := range released {
		if end := r.Add(p.ReuseDelay); u.NextCooldownEnd.IsZero() || end.Before(u.NextCooldownEnd) {
			u.NextCooldownEnd = end
		}
		waiter := t.cooldownFor(a)
		switch {
		case len(waiter) == 0:
		case a.Is4():
			u.Cooldown4++
		default:
			u.Cooldown6++
		}
		for i, k := range waiter {
			if !slices.Contains(waiter[:i], k) {
				u.Leases = append(u.Leases, world.Lease{Addr: a, Service: k, Released: r})
			}
		}
	}
	u.Leases = byRelease(u.Leases)
	if p.ReuseDelay == 0 {
		return
	}
	for _, s := range ipam.ByAge(t.w.Services) {
		for _, a := range slices.SortedFunc(maps.Keys(t.holder), netip.Addr.Compare) {
			if t.inPool(a) == p && slices.Contains(t.holder[a], s) {
				u.Leases = append(u.Leases, world.Lease{Addr: a, Service: s.Key})
			}
		}
	}
}
