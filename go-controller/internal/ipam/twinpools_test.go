// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// This file is the part of the twin about pools: which of their addresses are free, which pools serve a Service, and in
// which order.

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
	return w.Cluster.ModeSetting.Mode == world.Disabled || len(w.Cluster.AutoAssignCIDRs) > 0
}

func older(a, b *world.Pool) bool {
	return a.Created.Before(b.Created) || a.Created.Equal(b.Created) && a.Name < b.Name
}

// inPool returns the oldest pool that has the address in its ranges.
func (t *twin) inPool(a netip.Addr) *world.Pool {
	var best *world.Pool
	for _, p := range t.w.Pools {
		for _, r := range p.Ranges {
			if r.Contains(a) && (best == nil || older(p, best)) {
				best = p
			}
		}
	}
	return best
}

func (t *twin) blocked(a netip.Addr) bool {
	for _, n := range t.w.Nodes {
		if slices.Contains(n.Addrs, a) || slices.Contains(n.NextHops, a) {
			return true
		}
	}
	for _, addrs := range t.w.EgressIPs {
		if slices.Contains(addrs, a) {
			return true
		}
	}
	_, conflict := t.w.Conflicts[a]
	if _, leaving := t.w.Leaving[a]; conflict || leaving {
		return true
	}
	for _, p := range slices.Concat(t.w.Cluster.ClusterSubnets, t.w.Cluster.ServiceSubnets) {
		if p.Contains(a) {
			return true
		}
	}
	for _, d := range t.w.Domains {
		for _, s := range d.Subnets {
			hosts := s.Prefix.Addr().BitLen() - s.Prefix.Bits()
			last := a.Is4() && a == netipx.PrefixLastIP(s.Prefix)
			if a == s.Gateway || hosts > 1 && (a == s.Prefix.Addr() || last) {
				return true
			}
		}
	}
	return false
}

// freeAddrs returns the addresses of a family that a pool may allocate, in order.
func (t *twin) freeAddrs(p *world.Pool, f world.Family) []netip.Addr {
	var list []netip.Addr
	for _, r := range p.Ranges {
		if world.FamilyOf(r.From()) != f {
			continue
		}
		for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
			excluded := slices.ContainsFunc(p.Exclude, func(r netipx.IPRange) bool { return r.Contains(a) })
			ends := a.String()
			bad := p.AvoidBuggyIPs && f == world.IPv4 && (strings.HasSuffix(ends, ".0") || strings.HasSuffix(ends, ".255"))
			if t.inPool(a) == p && !excluded && !bad && !t.blocked(a) && t.waitsFor(a) == (world.Key{}) &&
				!slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// waitsFor returns the Service that the pool of an address reserves it for: of several, the first one.
func (t *twin) waitsFor(a netip.Addr) world.Key {
	if p := t.inPool(a); p != nil {
		for _, r := range p.Reservations {
			if slices.Contains(r.Addrs, a) {
				return r.Service
			}
		}
	}
	return world.Key{}
}

// unreserved returns the same snapshot with pools without reservations.
func (t *twin) unreserved() *twin {
	return t.withPools(func(p *world.Pool) { p.Reservations = nil })
}

// unusedReservations counts the addresses of the pool with an index that it may allocate, that are reserved, and that
// no Service has. whole is the snapshot without reservations.
func (t *twin) unusedReservations(whole *twin, pool int) (n4, n6 int64) {
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		for _, a := range whole.freeAddrs(whole.w.Pools[pool], f) {
			switch {
			case t.waitsFor(a) == world.Key{} || t.holder[a] != nil:
			case f == world.IPv4:
				n4++
			default:
				n6++
			}
		}
	}
	return n4, n6
}

// givable reports whether the pool of an address would allocate it to the Service if it were free.
func (t *twin) givable(s *world.Service, a netip.Addr) bool {
	p, waiter := t.inPool(a), t.waitsFor(a)
	switch {
	case !gives(p):
		return false
	case waiter == (world.Key{}):
		return admits(p, s) && slices.Contains(t.freeAddrs(p, world.FamilyOf(a)), a)
	}
	u := t.unreserved()
	return waiter == s.Key && slices.Contains(u.freeAddrs(u.inPool(a), world.FamilyOf(a)), a)
}

// waiting returns the address that is reserved for a Service.
func (t *twin) waiting(s *world.Service, f world.Family) netip.Addr {
	for _, p := range slices.SortedFunc(slices.Values(t.w.Pools), t.inTurn) {
		for _, r := range p.Reservations {
			for _, a := range r.Addrs {
				if world.FamilyOf(a) == f && t.inPool(a) == p && t.waitsFor(a) == s.Key &&
					(s.RequestedPool == "" || s.RequestedPool == p.Name) {
					return a
				}
			}
		}
	}
	return netip.Addr{}
}

func (t *twin) free(p *world.Pool, f world.Family) []netip.Addr {
	return slices.DeleteFunc(t.freeAddrs(p, f), func(a netip.Addr) bool {
		return t.holder[a] != nil || len(t.cooldownFor(a)) > 0
	})
}

// best returns the free address, among the first sixteen, whose shard has the fewest addresses.
func (t *twin) best(p *world.Pool, f world.Family) netip.Addr {
	load := map[world.ShardID]int{}
	for a := range t.holder {
		name := ""
		if p := t.inPool(a); p != nil {
			name = p.Name
		}
		if id, ok := t.shardOf(name, a); ok {
			load[id]++
		}
	}
	of := func(a netip.Addr) int {
		id, ok := t.shardOf(p.Name, a)
		if !ok {
			return 0
		}
		return load[id]
	}
	free := t.free(p, f)
	free = free[:min(16, len(free))]
	return slices.MinFunc(free, func(a, b netip.Addr) int { return of(a) - of(b) })
}
