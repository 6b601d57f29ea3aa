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
	groups map[sharingGroup][]sharedAddr
	full   map[groupPort]int
	// held are granted addresses that no status has yet. external is the same for spec.externalIPs.
	held, external map[world.Key][]netip.Addr
	// odd are the addresses in use that their Services would not get today.
	odd map[claim]bool
	// rests are the addresses in cooldown, which no Service has. resting has the same addresses by the Services that
	// had them last.
	rests   map[netip.Addr]*rest
	resting map[world.Key][]netip.Addr
	use     map[string]PoolUse
	// spent counts the addresses of a pool with a quota that a namespace has.
	spent   map[quotaKey]int
	shardOf func(pool string, a netip.Addr) (world.ShardID, bool)
	// load counts the addresses of each shard. It is nil until the first draw, because most passes draw nothing.
	// unplaced is the counter for addresses in no shard.
	load     map[world.ShardID]*int
	unplaced int
	// dry is set if a free list has free addresses but its cursor has passed them. That happens only after a release.
	dry bool
}

// claim is an address and the index in services of a Service that has it.
type claim struct {
	addr    netip.Addr
	service int
}

func newState(w *world.Snapshot, held map[world.Key][]netip.Addr, shardOf func(string, netip.Addr) (world.ShardID,
	bool)) *state {
	return &state{
		poolIndex: newPoolIndex(w),
		services:  ByAge(w.Services),
		holder:    make(map[netip.Addr]int, len(w.Services)),
		sharers:   make(map[netip.Addr][]int),
		groups:    make(map[sharingGroup][]sharedAddr),
		full:      make(map[groupPort]int),
		held:      held,
		external:  w.HeldExternalIPs,
		odd:       make(map[claim]bool),
		rests:     make(map[netip.Addr]*rest),
		resting:   make(map[world.Key][]netip.Addr),
		use:       make(map[string]PoolUse, len(w.Pools)),
		spent:     make(map[quotaKey]int),
		shardOf:   shardOf,
	}
}

func (l *state) taken(a netip.Addr) bool {
	_, ok := l.holder[a]
	return ok
}

// take assigns an address to a Service, given by its index in services. The address is free, or its holders share it
// or are about to give it up.
func (l *state) take(a netip.Addr, service int) {
	s, p := l.services[service], l.of(a)
	reservedFor, kept := l.kept[a]
	usable := p != nil && l.usable(p, a)
	if !usable || !p.gives() || kept && reservedFor != s.Key || !kept && !p.admits(s) {
		l.odd[claim{a, service}] = true
	}
	if p != nil && p.Quota > 0 && l.alone(a, s) {
		l.spent[quotaKey{p.Name, s.Key.Namespace}]++
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
	if rested := l.endRest(a); usable && !kept && !rested {
		p.freeList(world.FamilyOf(a)).use(a)
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
	if p := b.of(a); p != nil {
		return p.Name
	}
	return ""
}

// uses returns the usage of each pool. A pool that allocates nothing has no available addresses.
func (l *state) uses() map[string]PoolUse {
	leases := l.leases()
	for _, p := range l.pools {
		u := l.use[p.Name]
		u.Capacity4, u.Capacity6 = plus(p.v4.size, p.v4.kept), plus(p.v6.size, p.v6.kept)
		if p.gives() && l.suspended.Reason == "" {
			u.Available4, u.Available6 = p.v4.free(), p.v6.free()
		}
		u.Leases = leases[p]
		u.Problems, u.Suspended = p.informed(), l.suspended
		l.use[p.Name] = u
	}
	return l.use
}
