// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// cooldown is the cooldown of an address between two Services (spec.reuseDelay).
type cooldown struct {
	pool *pool
	// of are the Services that had the address last. Any of them may get it back.
	of       []world.Key
	released time.Time
}

func (r *cooldown) end() time.Time { return r.released.Add(r.pool.ReuseDelay) }

// startCooldowns starts the cooldown of the addresses that no Service has any more and whose delay has not passed. The
// Services that have addresses must have been adopted before.
func (l *state) startCooldowns(now time.Time) {
	for _, p := range l.pools {
		for _, lease := range l.released(p, now) {
			r := l.cooldowns[lease.Addr]
			if r == nil {
				r = &cooldown{pool: p, released: lease.Released}
				l.startCooldown(lease.Addr, r)
			}
			if !slices.Contains(r.of, lease.Service) {
				r.of = append(r.of, lease.Service)
				l.cooldownsByService[lease.Service] = append(l.cooldownsByService[lease.Service], lease.Addr)
			}
		}
	}
}

// released returns the leases of the addresses of p that are in cooldown, latest first. An address that was in use in
// the last pass and isn't now counts as released now. So does one with a time in the future, which another clock
// wrote.
func (l *state) released(p *pool, now time.Time) []world.Lease {
	if p.ReuseDelay <= 0 {
		return nil
	}
	var list []world.Lease
	next := ceil(now)
	for _, lease := range p.Leases {
		if l.poolOf(lease.Addr) != p || l.taken(lease.Addr) {
			continue
		}
		if lease.Released.IsZero() || lease.Released.After(next) {
			lease.Released = next
		}
		if lease.Released.Add(p.ReuseDelay).After(now) {
			list = append(list, lease)
		}
	}
	slices.SortFunc(list, compareReleased)
	return list[:min(len(list), v1alpha1.MaxLeases)]
}

func compareReleased(a, b world.Lease) int {
	return cmp.Or(b.Released.Compare(a.Released), a.Addr.Compare(b.Addr), a.Service.Compare(b.Service))
}

// ceil rounds up to a second: times in the API have no finer resolution, and a cooldown must not be shortened.
func ceil(t time.Time) time.Time {
	whole := t.Truncate(time.Second)
	if whole.Equal(t) {
		return whole
	}
	return whole.Add(time.Second)
}

func (l *state) startCooldown(a netip.Addr, r *cooldown) {
	p := r.pool
	l.cooldowns[a] = r
	if _, kept := l.reservations[a]; !kept && l.usable(p, a) {
		p.freeList(world.FamilyOf(a)).startCooldown(a, r.end())
	}
	u := l.use[p.Name]
	*u.resting(a)++
	if u.NextCooldownEnd.IsZero() || r.end().Before(u.NextCooldownEnd) {
		u.NextCooldownEnd = r.end()
	}
	l.use[p.Name] = u
}

// endCooldown ends the cooldown of an address that a Service takes, and reports whether there was one.
// PoolUse.RestsUntil and messages keep the end of the first cooldown. The next pass, which is due then at the latest,
// computes it again.
func (l *state) endCooldown(a netip.Addr) bool {
	r := l.cooldowns[a]
	if r == nil {
		return false
	}
	delete(l.cooldowns, a)
	if _, kept := l.reservations[a]; !kept && l.usable(r.pool, a) {
		r.pool.freeList(world.FamilyOf(a)).coolingDown--
	}
	u := l.use[r.pool.Name]
	*u.resting(a)--
	l.use[r.pool.Name] = u
	return true
}

func (u *PoolUsage) resting(a netip.Addr) *int64 {
	if world.FamilyOf(a) == world.IPv4 {
		return &u.Cooldown4
	}
	return &u.Cooldown6
}

// reuseCooldownAddr fills gets with addresses of the pools that are in cooldown for the Service, and returns the
// families that are still missing.
func (d *allocator) reuseCooldownAddr(b allocationRequest, gets *perFamily, pools []*pool,
	missing []world.Family) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		for _, a := range d.cooldownsByService[b.service.Key] {
			r := d.cooldowns[a]
			if r == nil || world.FamilyOf(a) != f || !slices.Contains(pools, r.pool) ||
				d.unusable(r.pool, a, b.service.Key) != "" {
				continue
			}
			with := *gets
			*with.of(f) = a
			if d.withinQuota(r.pool, b.service, b.had, with, 0) {
				*gets = with
				return true
			}
		}
		return false
	})
}

// leases returns PoolUse.Leases of each pool.
func (l *state) leases() map[*pool][]world.Lease {
	out := make(map[*pool][]world.Lease)
	for a, r := range l.cooldowns {
		for _, s := range r.of {
			out[r.pool] = append(out[r.pool], world.Lease{Addr: a, Service: s, Released: r.released})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, compareReleased)
	}
	for _, c := range l.leaseHolders() {
		p := l.poolOf(c.addr)
		out[p] = append(out[p], world.Lease{Addr: c.addr, Service: l.services[c.service].Key})
	}
	return out
}

// leaseHolders returns the holders of the addresses of pools with a ReuseDelay, by age.
func (l *state) leaseHolders() []claim {
	if !slices.ContainsFunc(l.pools, func(p *pool) bool { return p.ReuseDelay > 0 }) {
		return nil
	}
	var list []claim
	for a, first := range l.holder {
		if p := l.poolOf(a); p == nil || p.ReuseDelay <= 0 {
			continue
		}
		list = append(list, claim{a, first})
		for _, s := range l.sharers[a] {
			list = append(list, claim{a, s})
		}
	}
	slices.SortFunc(list, func(a, b claim) int { return cmp.Or(a.service-b.service, a.addr.Compare(b.addr)) })
	return list
}
