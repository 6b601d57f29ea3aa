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

// rest is the cooldown of an address between two Services (spec.reuseDelay).
type rest struct {
	pool *pool
	// of are the Services that had the address last. Any of them may get it back.
	of       []world.Key
	released time.Time
}

func (r *rest) until() time.Time { return r.released.Add(r.pool.ReuseDelay) }

// rest starts the cooldown of the addresses that no Service has any more and whose delay has not passed. The Services
// that have addresses must have been adopted before.
func (l *state) rest(now time.Time) {
	for _, p := range l.pools {
		for _, lease := range l.released(p, now) {
			r := l.rests[lease.Addr]
			if r == nil {
				r = &rest{pool: p, released: lease.Released}
				l.begin(lease.Addr, r)
			}
			if !slices.Contains(r.of, lease.Service) {
				r.of = append(r.of, lease.Service)
				l.resting[lease.Service] = append(l.resting[lease.Service], lease.Addr)
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
		if l.of(lease.Addr) != p || l.taken(lease.Addr) {
			continue
		}
		if lease.Released.IsZero() || lease.Released.After(next) {
			lease.Released = next
		}
		if lease.Released.Add(p.ReuseDelay).After(now) {
			list = append(list, lease)
		}
	}
	slices.SortFunc(list, latest)
	return list[:min(len(list), v1alpha1.MaxLeases)]
}

func latest(a, b world.Lease) int {
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

func (l *state) begin(a netip.Addr, r *rest) {
	p := r.pool
	l.rests[a] = r
	if _, kept := l.kept[a]; !kept && l.usable(p, a) {
		p.freeList(world.FamilyOf(a)).rest(a, r.until())
	}
	u := l.use[p.Name]
	*u.resting(a)++
	if u.RestsUntil.IsZero() || r.until().Before(u.RestsUntil) {
		u.RestsUntil = r.until()
	}
	l.use[p.Name] = u
}

// endRest ends the cooldown of an address that a Service takes, and reports whether there was one. PoolUse.RestsUntil
// and messages keep the end of the first cooldown. The next pass, which is due then at the latest, computes it again.
func (l *state) endRest(a netip.Addr) bool {
	r := l.rests[a]
	if r == nil {
		return false
	}
	delete(l.rests, a)
	if _, kept := l.kept[a]; !kept && l.usable(r.pool, a) {
		r.pool.freeList(world.FamilyOf(a)).resting--
	}
	u := l.use[r.pool.Name]
	*u.resting(a)--
	l.use[r.pool.Name] = u
	return true
}

func (u *PoolUse) resting(a netip.Addr) *int64 {
	if world.FamilyOf(a) == world.IPv4 {
		return &u.Resting4
	}
	return &u.Resting6
}

// reclaim fills gets with addresses of the pools that are in cooldown for the Service, and returns the families that
// are still missing.
func (d *allocator) reclaim(b allocationRequest, gets *perFamily, pools []*pool,
	missing []world.Family) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		for _, a := range d.resting[b.service.Key] {
			r := d.rests[a]
			if r == nil || world.FamilyOf(a) != f || !slices.Contains(pools, r.pool) ||
				d.unusable(r.pool, a, b.service.Key) != "" {
				continue
			}
			with := *gets
			*with.of(f) = a
			if d.within(r.pool, b.service, b.had, with, 0) {
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
	for a, r := range l.rests {
		for _, s := range r.of {
			out[r.pool] = append(out[r.pool], world.Lease{Addr: a, Service: s, Released: r.released})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, latest)
	}
	for _, c := range l.claims() {
		p := l.of(c.addr)
		out[p] = append(out[p], world.Lease{Addr: c.addr, Service: l.services[c.service].Key})
	}
	return out
}

// claims returns the holders of the addresses of pools with a ReuseDelay, by age.
func (l *state) claims() []claim {
	if !slices.ContainsFunc(l.pools, func(p *pool) bool { return p.ReuseDelay > 0 }) {
		return nil
	}
	var list []claim
	for a, first := range l.holder {
		if p := l.of(a); p == nil || p.ReuseDelay <= 0 {
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
