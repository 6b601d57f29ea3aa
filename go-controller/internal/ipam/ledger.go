// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// ledger is the state of one pass: who has which address.
type ledger struct {
	*book
	// services are in order of age; holder says which of them was the first to have an
	// address, sharers who else has it.
	services []*world.Service
	holder   map[netip.Addr]int
	sharers  map[netip.Addr][]int
	// groups have the addresses that may be shared, in the order in which they were
	// taken; full counts those at the front that have no room for a port.
	groups map[sharingGroup][]sharedAddr
	full   map[groupPort]int
	// held are addresses granted that no status shows yet, external the same of
	// spec.externalIPs.
	held, external map[world.Key][]netip.Addr
	// odd are the addresses in use that their Services would not be given today.
	odd map[claim]bool
	// rests are the addresses that nobody has and that rest; resting are the same by the
	// Services that had them last.
	rests   map[netip.Addr]*rest
	resting map[world.Key][]netip.Addr
	use     map[string]PoolUse
	// spent counts the addresses that a namespace has of a pool with a quota.
	spent   map[account]int
	shardOf func(pool string, a netip.Addr) (world.ShardID, bool)
	// load counts the addresses of each shard; nil until somebody draws, because in
	// most passes nobody does. unplaced stands for the addresses of no shard.
	load     map[world.ShardID]*int
	unplaced int
	// dry: a stock has free addresses, but its cursor is past them. That happens only
	// after a release.
	dry bool
}

// claim is an address that a Service, known by its rank in age, has.
type claim struct {
	addr    netip.Addr
	service int
}

func newLedger(w *world.Snapshot, held map[world.Key][]netip.Addr, shardOf func(string, netip.Addr) (world.ShardID, bool)) *ledger {
	return &ledger{
		book:     newBook(w),
		services: ByAge(w.Services),
		holder:   make(map[netip.Addr]int, len(w.Services)),
		sharers:  make(map[netip.Addr][]int),
		groups:   make(map[sharingGroup][]sharedAddr),
		full:     make(map[groupPort]int),
		held:     held,
		external: w.HeldExternalIPs,
		odd:      make(map[claim]bool),
		rests:    make(map[netip.Addr]*rest),
		resting:  make(map[world.Key][]netip.Addr),
		use:      make(map[string]PoolUse, len(w.Pools)),
		spent:    make(map[account]int),
		shardOf:  shardOf,
	}
}

func (l *ledger) taken(a netip.Addr) bool {
	_, ok := l.holder[a]
	return ok
}

// take gives an address to a Service, known by its rank in age. It is free, or those who
// have it share it, or are about to leave it.
func (l *ledger) take(a netip.Addr, service int) {
	s, p := l.services[service], l.of(a)
	reservedFor, kept := l.kept[a]
	usable := p != nil && l.usable(p, a)
	if !usable || !p.gives() || kept && reservedFor != s.Key || !kept && !p.admits(s) {
		l.odd[claim{a, service}] = true
	}
	if p != nil && p.Quota > 0 && l.alone(a, s) {
		l.spent[account{p.Name, s.Key.Namespace}]++
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
		p.stock(world.FamilyOf(a)).use(a)
	}
	u := l.use[p.Name]
	if world.FamilyOf(a) == world.IPv4 {
		u.Assigned4++
	} else {
		u.Assigned6++
	}
	l.use[p.Name] = u
}

func (l *ledger) count(a netip.Addr) {
	if load := l.loadOf(l.poolName(a), a); load != &l.unplaced {
		*load++
	}
}

// loadOf returns the counter of the shard that an address would be in.
func (l *ledger) loadOf(pool string, a netip.Addr) *int {
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

func (b *book) poolName(a netip.Addr) string {
	if p := b.of(a); p != nil {
		return p.Name
	}
	return ""
}

// uses returns what is to be told of each pool. A pool that gives nothing has nothing
// available.
func (l *ledger) uses() map[string]PoolUse {
	leases := l.leases()
	for _, p := range l.pools {
		u := l.use[p.Name]
		u.Capacity4, u.Capacity6 = plus(p.v4.size, p.v4.kept), plus(p.v6.size, p.v6.kept)
		if p.gives() && l.suspended.Reason == "" {
			u.Available4, u.Available6 = p.v4.free(), p.v6.free()
		}
		u.Leases = leases[p]
		u.Problems, u.Suspended = p.told(), l.suspended
		l.use[p.Name] = u
	}
	return l.use
}
