// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Allocation is the address of every Service and what is left in the pools.
type Allocation struct {
	Services map[world.Key]Outcome
	Pools    map[string]PoolUse
	desk     *desk
	// waiting: a Service would have more, or something else, if it could.
	waiting bool
}

// PoolOf names the pool that an address belongs to, empty if it is in none; where
// pools overlap, the oldest.
func (a *Allocation) PoolOf(addr netip.Addr) string { return a.desk.poolName(addr) }

// Outcome is what one Service has. Without Addrs it waits, and Reason and Message say
// why; with both it is served, and they are a remark.
type Outcome struct {
	// Addrs are in the order of the Service's families, at most one of each.
	Addrs []netip.Addr
	// External are those addresses that the Service lists itself that are answered for,
	// HeldExternal those that are its own: these, and those that nothing answers for now because
	// their pool does so for no Service now, or gives them to none.
	External, HeldExternal []netip.Addr
	// Foreign: the status has an address that another controller wrote and that no pool would
	// give. It stays there, and the Service gets nothing.
	Foreign bool
	// Pool has the first of them; empty if that one is in no pool (any more).
	Pool    string
	Reason  Reason
	Message string
}

// PoolUse counts the addresses of a pool. Counts stop at the largest int64.
type PoolUse struct {
	// Capacity is how many addresses the pool could have given in all, the reserved ones
	// among them.
	Capacity4, Capacity6 int64
	// Assigned are in use: granted, or still in the status of a Service.
	Assigned4, Assigned6 int64
	// Available may be given right now: none if the pool is disabled or invalid, or all are
	// suspended.
	Available4, Available6 int64
	// Resting are given to nobody but those who had them last (spec.reuseDelay).
	Resting4, Resting6 int64
	// Leases are the next pass's world.Pool.Leases: the addresses that rest, the latest
	// first, then those in use by the age of their Services. None without a ReuseDelay.
	Leases []world.Lease
	// RestsUntil is when the first rest ends: another pass is due then. Zero if none does.
	RestsUntil time.Time
	// Problems are what is wrong between this pool and the rest of the world, beyond
	// the problems that the pool has by itself.
	Problems []string
	// Suspended says why no pool gives anything new.
	Suspended Suspension
}

// Allocate decides which address each Service has. Services keep what they have
// according to held (granted by us, not observed yet) or else to their status. shardOf
// says which shard an address of a pool would be in, so that new addresses spread over
// the shards.
func Allocate(w *world.Snapshot, held map[world.Key][]netip.Addr, shardOf func(pool string, a netip.Addr) (world.ShardID, bool)) *Allocation {
	l := newLedger(w, held, shardOf)
	owns := make([]assets, len(l.services))
	for i, s := range l.services {
		if takesBack(&w.Cluster, s, held[s.Key]) {
			owns[i].leaves = true
		} else {
			owns[i] = l.own(i)
			l.adopt(i, &owns[i], true)
		}
	}
	for i := range l.services {
		l.adopt(i, &owns[i], false)
	}
	for i := range l.services {
		if owns[i].leaves {
			l.reserveStatus(i)
		}
	}
	a := &Allocation{Services: make(map[world.Key]Outcome, len(l.services)), desk: &desk{ledger: l, open: l.open()}}
	externals := a.desk.keepExternals()
	l.rest(w.Now)
	a.desk.claimExternals(externals)
	for i, s := range l.services {
		a.note(s, a.desk.serve(i, owns[i], externals[i]))
	}
	a.Pools = l.uses()
	return a
}

// InOrder returns the Services by age, those admitted later at the end.
func (a *Allocation) InOrder() []*world.Service { return a.desk.services }

// ByAge returns the Services in the order in which they have rights: the oldest first,
// of one age by key.
func ByAge(services []*world.Service) []*world.Service {
	return slices.SortedFunc(slices.Values(services), func(a, b *world.Service) int {
		return cmp.Or(a.Created.Compare(b.Created), a.Key.Compare(b.Key))
	})
}

// perFamily is at most one address of each family.
type perFamily struct{ v4, v6 netip.Addr }

func (p *perFamily) of(f world.Family) *netip.Addr {
	if f == world.IPv4 {
		return &p.v4
	}
	return &p.v6
}

func (p *perFamily) empty() bool { return !p.v4.IsValid() && !p.v6.IsValid() }

// assets are what a Service brings along.
type assets struct {
	has perFamily
	// addrs are the addresses that it had, or was given.
	addrs []netip.Addr
	// lost is an address that it had, but an older Service has too: to; why says why they
	// don't share it.
	lost netip.Addr
	to   int
	why  string
	// leaves is set if there may be an address in the status that it does not keep.
	leaves bool
	// refused says which addresses of another controller in the status are not taken over, and
	// why; foreign is set if they are left alone, and the Service with them.
	refused string
	foreign bool
}

// families are those that the Service may have an address of.
func families(s *world.Service) []world.Family {
	if s.FamilyPolicy == world.SingleStack && len(s.Families) > 1 {
		return s.Families[:1]
	}
	return s.Families
}

// open lists the pools that serve those who name none, in the order
// in which they are tried.
func (b *book) open() []*pool {
	return slices.DeleteFunc(slices.Clone(b.pools), func(p *pool) bool { return !p.AutoAssign || !p.gives() })
}
