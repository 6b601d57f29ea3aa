// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// cooldown is the cooldown of an address between two Services (spec.reuseDelay).
type cooldown struct {
	pool *pool
	// of are the Services that had the address last, and has their set. Any of them may get it back.
	of       []world.Key
	has      map[world.Key]bool
	released time.Time
}

func (c *cooldown) end() time.Time { return c.released.Add(c.pool.ReuseDelay) }

// startCooldowns starts the cooldown of the addresses that no Service has any more and whose delay has not passed. The
// Services that have addresses must have been adopted before.
func (st *state) startCooldowns(now time.Time) {
	for _, p := range st.pools {
		for _, lease := range st.released(p, now) {
			c := st.cooldowns[lease.Addr]
			if c == nil {
				c = &cooldown{pool: p, has: map[world.Key]bool{}, released: lease.Released}
				st.startCooldown(lease.Addr, c)
			}
			if !c.has[lease.Service] {
				c.has[lease.Service] = true
				c.of = append(c.of, lease.Service)
				st.cooldownsByService[lease.Service] = append(st.cooldownsByService[lease.Service], lease.Addr)
			}
		}
	}
}

// released returns the leases of the addresses of p that are in cooldown, latest first. An address that was in use in
// the last pass and isn't now counts as released now. So does one with a time in the future, which another clock
// wrote.
func (st *state) released(p *pool, now time.Time) []world.Lease {
	if p.ReuseDelay <= 0 {
		return nil
	}
	var list []world.Lease
	next := roundUp(now)
	for _, lease := range p.Leases {
		if st.poolOf(lease.Addr) != p || st.taken(lease.Addr) {
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
	return withinMaxLeases(withinCooldownQuota(p, list))
}

// withinMaxLeases returns at most v1alpha1.MaxLeases leases. The namespaces that have most are reduced to an equal
// share and what others leave: each of the Services that shared an address has a lease of it, and a tenant that deletes
// many of them must not end the cooldown of others.
func withinMaxLeases(latestFirst []world.Lease) []world.Lease {
	if len(latestFirst) <= v1alpha1.MaxLeases {
		return latestFirst
	}
	claims := make([]plan.Claim[int], len(latestFirst))
	for i, lease := range latestFirst {
		claims[i] = plan.Claim[int]{Namespace: lease.Service.Namespace, Key: i, Cost: 1}
	}
	kept, _ := plan.Divide(claims, v1alpha1.MaxLeases)
	i := -1
	return slices.DeleteFunc(latestFirst, func(world.Lease) bool {
		i++
		return !kept[i]
	})
}

// withinCooldownQuota returns the leases without those by which a namespace would have more addresses in cooldown than
// the quota of the pool: a tenant that deletes and creates Services could withhold all addresses from others. The
// addresses released last stay.
func withinCooldownQuota(p *pool, latestFirst []world.Lease) []world.Lease {
	if p.Quota == 0 {
		return latestFirst
	}
	counted := map[string]map[netip.Addr]bool{}
	return slices.DeleteFunc(latestFirst, func(lease world.Lease) bool {
		addrs := counted[lease.Service.Namespace]
		if addrs == nil {
			addrs = map[netip.Addr]bool{}
			counted[lease.Service.Namespace] = addrs
		}
		if !addrs[lease.Addr] && len(addrs) == p.Quota {
			return true
		}
		addrs[lease.Addr] = true
		return false
	})
}

func compareReleased(a, b world.Lease) int {
	return cmp.Or(b.Released.Compare(a.Released), a.Addr.Compare(b.Addr), a.Service.Compare(b.Service))
}

// roundUp rounds up to a second: times in the API have no finer resolution, and a cooldown must not be shortened.
func roundUp(t time.Time) time.Time {
	whole := t.Truncate(time.Second)
	if whole.Equal(t) {
		return whole
	}
	return whole.Add(time.Second)
}

func (st *state) startCooldown(a netip.Addr, c *cooldown) {
	p := c.pool
	st.cooldowns[a] = c
	if _, kept := st.reservations[a]; !kept && st.usable(p, a) {
		p.freeList(world.FamilyOf(a)).startCooldown(a, c.end())
	}
	u := st.use[p.Name]
	*u.cooldownCount(a)++
	if u.NextCooldownEnd.IsZero() || c.end().Before(u.NextCooldownEnd) {
		u.NextCooldownEnd = c.end()
	}
	st.use[p.Name] = u
}

// endCooldown ends the cooldown of an address that a Service takes, and reports whether there was one.
// PoolUsage.NextCooldownEnd and messages keep the end of the first cooldown. The next pass, which is due then at the
// latest, computes it again.
func (st *state) endCooldown(a netip.Addr) bool {
	c := st.cooldowns[a]
	if c == nil {
		return false
	}
	delete(st.cooldowns, a)
	if _, kept := st.reservations[a]; !kept && st.usable(c.pool, a) {
		c.pool.freeList(world.FamilyOf(a)).coolingDown--
	}
	u := st.use[c.pool.Name]
	*u.cooldownCount(a)--
	st.use[c.pool.Name] = u
	return true
}

func (u *PoolUsage) cooldownCount(a netip.Addr) *int64 {
	if world.FamilyOf(a) == world.IPv4 {
		return &u.Cooldown4
	}
	return &u.Cooldown6
}

// reuseCooldownAddr fills gets with addresses of the pools that are in cooldown for the Service, and returns the
// families that are still missing.
func (al *allocator) reuseCooldownAddr(r allocationRequest, gets *perFamily, pools []*pool,
	missing []world.Family) []world.Family {
	key := al.services[r.service].Key
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		for _, a := range al.cooldownsByService[key] {
			c := al.cooldowns[a]
			if c == nil || world.FamilyOf(a) != f || !slices.Contains(pools, c.pool) ||
				al.unusable(c.pool, a, key) != "" {
				continue
			}
			with := *gets
			*with.of(f) = a
			if al.withinQuota(c.pool, r.service, r.had, with, 0) {
				*gets = with
				return true
			}
		}
		return false
	})
}

// leases returns PoolUsage.Leases of each pool.
func (st *state) leases() map[*pool][]world.Lease {
	out := make(map[*pool][]world.Lease)
	for a, c := range st.cooldowns {
		for _, s := range c.of {
			out[c.pool] = append(out[c.pool], world.Lease{Addr: a, Service: s, Released: c.released})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, compareReleased)
	}
	for _, c := range st.leaseHolders() {
		p := st.poolOf(c.addr)
		out[p] = append(out[p], world.Lease{Addr: c.addr, Service: st.services[c.service].Key})
	}
	return out
}

// leaseHolders returns the holders of the addresses of pools with a ReuseDelay, by age.
func (st *state) leaseHolders() []claim {
	if !slices.ContainsFunc(st.pools, func(p *pool) bool { return p.ReuseDelay > 0 }) {
		return nil
	}
	var list []claim
	for a, first := range st.holder {
		if p := st.poolOf(a); p == nil || p.ReuseDelay <= 0 {
			continue
		}
		if sh := st.sharers[a]; sh != nil {
			for _, service := range sh.holders {
				list = append(list, claim{a, service})
			}
		} else {
			list = append(list, claim{a, first})
		}
	}
	slices.SortFunc(list, func(a, b claim) int { return cmp.Or(a.service-b.service, a.addr.Compare(b.addr)) })
	return list
}
