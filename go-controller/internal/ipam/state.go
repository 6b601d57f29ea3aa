// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// state is the state of one pass: which Service has which address.
type state struct {
	*poolIndex
	// services are in order of age. holder maps an address to the index of the first Service that took it, sharers to
	// the others.
	services []*world.Service
	holder   map[netip.Addr]int
	sharers  map[netip.Addr][]int
	// groups have the addresses that may be shared, in the order in which they were taken. full counts the addresses
	// at the front on which a port is in use already.
	groups  map[sharingGroup][]sharedAddr
	skipped map[groupPort]int
	// held are granted addresses that no status has yet. external is the same for spec.externalIPs.
	held, external map[world.Key][]netip.Addr
	// ineligible are the addresses in use that their Services would not get today.
	ineligible map[claim]bool
	// cooldowns are the addresses in cooldown, which no Service has. resting has the same addresses by the Services that
	// had them last.
	cooldowns          map[netip.Addr]*cooldown
	cooldownsByService map[world.Key][]netip.Addr
	use                map[string]PoolUsage
	// quotaUsed counts the addresses of a pool with a quota that a namespace has.
	quotaUsed map[quotaKey]int
	shardOf   func(pool string, a netip.Addr) (world.ShardID, bool)
	// load counts the addresses of each shard. It is nil until the first draw, because most passes draw nothing.
	// unplaced is the counter for addresses in no shard.
	load     map[world.ShardID]*int
	unplaced int
	// cursorExhausted is set if a free list has free addresses but its cursor has passed them. That happens only after a
	// release.
	cursorExhausted bool
}

// claim is an address and the index in services of a Service that has it.
type claim struct {
	addr    netip.Addr
	service int
}

func newState(w *world.Snapshot, held map[world.Key][]netip.Addr, shardOf func(string, netip.Addr) (world.ShardID,
	bool)) *state {
	return &state{
		poolIndex:          newPoolIndex(w),
		services:           ByAge(w.Services),
		holder:             make(map[netip.Addr]int, len(w.Services)),
		sharers:            make(map[netip.Addr][]int),
		groups:             make(map[sharingGroup][]sharedAddr),
		skipped:            make(map[groupPort]int),
		held:               held,
		external:           w.HeldExternalIPs,
		ineligible:         make(map[claim]bool),
		cooldowns:          make(map[netip.Addr]*cooldown),
		cooldownsByService: make(map[world.Key][]netip.Addr),
		use:                make(map[string]PoolUsage, len(w.Pools)),
		quotaUsed:          make(map[quotaKey]int),
		shardOf:            shardOf,
	}
}

func (l *state) taken(a netip.Addr) bool {
	_, ok := l.holder[a]
	return ok
}

// take assigns an address to a Service, given by its index in services. The address is free, or its holders share it
// or are about to give it up.
func (l *state) take(a netip.Addr, service int) {
	s, p := l.services[service], l.poolOf(a)
	reservedFor, kept := l.reservations[a]
	usable := p != nil && l.usable(p, a)
	if !usable || !p.canAllocate() || kept && reservedFor != s.Key || !kept && !p.admits(s) {
		l.ineligible[claim{a, service}] = true
	}
	if p != nil && p.Quota > 0 && l.isSoleInNamespace(a, s) {
		l.quotaUsed[quotaKey{p.Name, s.Key.Namespace}]++
	}
	if l.taken(a) {
		l.sharers[a] = append(l.sharers[a], service)
		return
	}
	l.holder[a] = service
	if s.SharingKey != "" {
		at := sharingGroup{s.SharingKey, world.FamilyOf(a), s.Key.Namespace}
		if p != nil && p.SharedByCluster {
			at.namespace = ""
		}
		l.groups[at] = append(l.groups[at], sharedAddr{a, len(l.holder)})
	}
	if l.load != nil {
		l.count(a)
	}
	if p == nil {
		return
	}
	if rested := l.endCooldown(a); usable && !kept && !rested {
		p.freeList(world.FamilyOf(a)).markUsed(a)
	}
	u := l.use[p.Name]
	if world.FamilyOf(a) == world.IPv4 {
		u.Assigned4++
	} else {
		u.Assigned6++
	}
	l.use[p.Name] = u
}

func (l *state) count(a netip.Addr) {
	if load := l.loadOf(l.poolName(a), a); load != &l.unplaced {
		*load++
	}
}

// loadOf returns the counter of the shard that an address would be in.
func (l *state) loadOf(pool string, a netip.Addr) *int {
	if l.load == nil {
		l.load = make(map[world.ShardID]*int)
		for a := range l.holder {
			l.count(a)
		}
	}
	id, ok := l.shardOf(pool, a)
	if !ok {
		return &l.unplaced
	}
	n := l.load[id]
	if n == nil {
		n = new(int)
		l.load[id] = n
	}
	return n
}

func (b *poolIndex) poolName(a netip.Addr) string {
	if p := b.poolOf(a); p != nil {
		return p.Name
	}
	return ""
}

// usage returns the usage of each pool. A pool that allocates nothing has no available addresses.
func (l *state) usage() map[string]PoolUsage {
	leases := l.leases()
	for _, p := range l.pools {
		u := l.use[p.Name]
		u.Capacity4, u.Capacity6 = plus(p.v4.size, p.v4.kept), plus(p.v6.size, p.v6.kept)
		if p.canAllocate() && l.suspended.Reason == "" {
			u.Available4, u.Available6 = p.v4.free(), p.v6.free()
		}
		u.Leases = leases[p]
		u.Problems, u.Suspended = p.problemMessages(), l.suspended
		l.use[p.Name] = u
	}
	return l.use
}
