// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Allocation holds the addresses of every Service and the usage of the pools.
type Allocation struct {
	Services  map[world.Key]Outcome
	Pools     map[string]PoolUsage
	allocator *allocator
	// hasPending is set if a Service would get more addresses, or other ones, if it could.
	hasPending bool
}

// PoolOf returns the name of the pool that an address belongs to, or an empty string if it is in none. Where pools
// overlap, it is the oldest pool.
func (a *Allocation) PoolOf(addr netip.Addr) string { return a.allocator.poolName(addr) }

// Outcome is the allocation of one Service. Without Addrs the Service is pending for Reason, which Message explains.
// With Addrs it is served, and Reason and Message are a remark.
type Outcome struct {
	// Addrs are in the order of the Service's families, at most one per family.
	Addrs []netip.Addr
	// External are the addresses of spec.externalIPs that are served. HeldExternal are those that belong to the
	// Service, and that no other Service gets: the ones in External, and those that are not served now because their
	// pool serves external IPs for no Service, is invalid or excludes them.
	External, HeldExternal []netip.Addr
	// Foreign is set if the status has an address that another controller wrote and that no pool would allocate. The
	// address stays there, and the Service gets no address.
	Foreign bool
	// Releases are the addresses in Addrs that the Service loses when a provider fulfils its claim: it requests another
	// pool, which is external.
	Releases []netip.Addr
	// Pool is the pool of the first address. It is empty if that address is in no pool (any more).
	Pool    string
	Reason  Reason
	Message string
}

// PoolUsage counts the addresses of a pool. Counts saturate at the largest int64.
type PoolUsage struct {
	// Capacity is the total number of addresses that the pool can allocate, including reserved ones.
	Capacity4, Capacity6 int64
	// Assigned addresses are in use: granted, held (Outcome.HeldExternal), or still in the status of a Service.
	Assigned4, Assigned6 int64
	// Reserved addresses are reserved for one Service, and no Service has them.
	Reserved4, Reserved6 int64
	// Available addresses can be allocated now. There are none if the pool is disabled or invalid, or if all pools
	// are suspended.
	Available4, Available6 int64
	// Addresses in cooldown can be allocated only to the Services that had them last (spec.reuseDelay).
	Cooldown4, Cooldown6 int64
	// Leases are world.Pool.Leases of the next pass: the addresses in cooldown, latest first, then those in use by
	// the age of their Services. There are none without a ReuseDelay.
	Leases []world.Lease
	// NextCooldownEnd is when the first cooldown ends and another pass is due. It is zero if there is no cooldown.
	NextCooldownEnd time.Time
	// External is set if a provider chooses the addresses. Then Capacity and Available are zero, and ClaimReason and
	// ClaimMessage are why its claims are not fulfilled.
	External     bool
	ClaimReason  Reason
	ClaimMessage string
	// Problems are conflicts of this pool with other objects, in addition to the problems of the pool itself.
	Problems []string
	// Suspended is why no pool allocates new addresses.
	Suspended Suspension
}

// Allocate decides which addresses each Service has. A Service keeps the addresses that it was granted and that its
// status does not show yet, or else those in its status. shardOf returns the shard that an address of a pool would be
// in, so that new addresses spread over the shards.
func Allocate(w *world.Snapshot, shardOf func(pool string, a netip.Addr) (world.ShardID, bool)) *Allocation {
	st := newState(w, shardOf)
	owns := make([]ownership, len(st.services))
	for i, s := range st.services {
		if releasesAddrs(&w.Cluster, s, w.Granted[s.Key]) {
			owns[i].releasesAddr = true
		} else {
			owns[i] = st.previousAddrs(i)
		}
	}
	for _, by := range []title{given, shown, granted, cleared} {
		for i := range st.services {
			st.adopt(i, &owns[i], by)
		}
	}
	for i, s := range st.services {
		if owns[i].releasesAddr {
			st.reserveAll(i, s.Shown())
		}
		st.reserveAll(i, w.Unsettled[s.Key])
	}
	a := &Allocation{Services: make(map[world.Key]Outcome, len(st.services)),
		allocator: &allocator{state: st, autoAssign: st.autoAssignPools()}}
	externals := a.allocator.keepExternals(owns)
	st.reserveExternals()
	st.startCooldowns(w.Now)
	a.allocator.assignExternalIPs(externals)
	st.countClaims()
	for i, s := range st.services {
		o, waits := a.allocator.allocate(i, owns[i], externals[i])
		a.record(s, o, waits)
	}
	st.keepClaims(w)
	a.Pools = st.usage()
	return a
}

// InOrder returns the Services by age, with those that Add added at the end.
func (a *Allocation) InOrder() []*world.Service { return a.allocator.services }

// ByAge returns the Services in order of precedence: the oldest first, those of equal age by key.
func ByAge(services []*world.Service) []*world.Service {
	return slices.SortedFunc(slices.Values(services), func(a, b *world.Service) int {
		return cmp.Or(a.Created.Compare(b.Created), a.Key.Compare(b.Key))
	})
}

// perFamily has at most one address per family.
type perFamily struct{ v4, v6 netip.Addr }

func (p *perFamily) of(f world.Family) *netip.Addr {
	if f == world.IPv4 {
		return &p.v4
	}
	return &p.v6
}

func (p *perFamily) empty() bool { return !p.v4.IsValid() && !p.v6.IsValid() }

// ownership is what a Service had before this pass.
type ownership struct {
	has perFamily
	// addrs are the addresses that the Service had or was granted.
	addrs []netip.Addr
	// conflicting is an address that the Service had but that conflictingHolder, which comes first, has as well.
	// conflictingReason is why they don't share it.
	conflicting       netip.Addr
	conflictingHolder int
	conflictingReason string
	// releasesAddr is set if the status may have an address that the Service does not keep.
	releasesAddr bool
	// refused lists the addresses of another controller in the status that are not adopted, with the reason. foreign is
	// set if these addresses, and the Service, are left untouched.
	refused string
	foreign bool
}

// families returns the families in which the Service may have an address.
func families(s *world.Service) []world.Family {
	if s.FamilyPolicy == world.SingleStack && len(s.Families) > 1 {
		return s.Families[:1]
	}
	return s.Families
}

// autoAssignPools returns the pools that serve Services that name no pool, in the order in which they are tried.
func (pi *poolIndex) autoAssignPools() []*pool {
	return slices.DeleteFunc(slices.Clone(pi.pools), func(p *pool) bool { return !p.AutoAssign || !p.canAllocate() })
}
