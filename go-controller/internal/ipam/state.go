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
	// all that did: it has the addresses that several Services have, and those that others were compared for.
	services []*world.Service
	holder   map[netip.Addr]int
	sharers  map[netip.Addr]*sharers
	// groups have the addresses that may be shared, in the order in which they were taken. skipped counts the
	// addresses at the front on which a port is in use already.
	groups  map[sharingGroup][]sharedAddr
	skipped map[groupPort]int
	// granted are addresses that no status has yet: none for a Service whose status has some that it lost. external
	// is the same for spec.externalIPs.
	granted, external map[world.Key][]netip.Addr
	// externalSets are the sets of the addresses of spec.externalIPs that Services held before this pass.
	externalSets map[int]map[netip.Addr]bool
	// selectors are the results of selector, ports those of portsOf.
	selectors map[int]string
	ports     map[int]map[portID]bool
	// sharedPorts and refusedPorts count what maxSharedExternals limits, by namespace and by Service. listing counts the
	// Services of a namespace that want to share addresses of spec.externalIPs.
	sharedPorts  map[string]int
	refusedPorts map[int]int
	listing      map[string]int
	// externals counts what maxExternals limits, by namespace.
	externals map[string]int
	// listed are addresses that are drawn last.
	listed world.Listed
	// ineligible are the addresses in use that their Services would not get today, whether or not a claim has them.
	ineligible map[claim]bool
	// cooldowns are the addresses in cooldown, which no Service has. cooldownsByService has the same addresses by the
	// Services that had them last.
	cooldowns          map[netip.Addr]*cooldown
	cooldownsByService map[world.Key][]netip.Addr
	use                map[string]PoolUsage
	quotaUsage         *quotaUsage
	claims             *claimState
	shardOf            func(pool string, a netip.Addr) (world.ShardID, bool)
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

func newState(w *world.Snapshot, shardOf func(string, netip.Addr) (world.ShardID, bool)) *state {
	st := &state{
		poolIndex:          newPoolIndex(w),
		services:           ByAge(w.Services),
		holder:             make(map[netip.Addr]int, len(w.Services)),
		sharers:            make(map[netip.Addr]*sharers),
		groups:             make(map[sharingGroup][]sharedAddr),
		skipped:            make(map[groupPort]int),
		granted:            w.Granted,
		external:           w.HeldExternalIPs,
		externalSets:       make(map[int]map[netip.Addr]bool),
		selectors:          make(map[int]string),
		ports:              make(map[int]map[portID]bool),
		sharedPorts:        make(map[string]int),
		refusedPorts:       make(map[int]int),
		listing:            make(map[string]int),
		externals:          make(map[string]int),
		listed:             w.Listed,
		ineligible:         make(map[claim]bool),
		cooldowns:          make(map[netip.Addr]*cooldown),
		cooldownsByService: make(map[world.Key][]netip.Addr),
		use:                make(map[string]PoolUsage, len(w.Pools)),
		quotaUsage:         newQuotaUsage(),
		claims:             newClaimState(w),
		shardOf:            shardOf,
	}
	st.claims.indexServices(st.services)
	for a, key := range w.Leaving {
		st.countLeaving(a, key.Namespace)
	}
	for key, addrs := range w.LeavingShared {
		for _, a := range addrs {
			st.countLeaving(a, key.Namespace)
		}
	}
	return st
}

// countLeaving counts an address of a Service that is no longer served. It is the namespace's until no status shows it:
// the Service may be served again before, and gets it back.
func (st *state) countLeaving(a netip.Addr, namespace string) {
	p := st.poolOf(a)
	if p == nil {
		return
	}
	st.quotaUsage.count(p, a, namespace)
	if p.ExternalIPs {
		st.externals[namespace]++
	}
}

// reserve takes an address that a Service gives up, as long as its status shows it.
func (st *state) reserve(a netip.Addr, service int) {
	st.take(a, service)
	namespace, p := st.services[service].Key.Namespace, st.poolOf(a)
	st.quotaUsage.reserve(p, claim{a, service}, namespace)
	if p != nil && p.ExternalIPs {
		st.externals[namespace]++
	}
}

// keep assigns an address to a Service that may have it already, or that gave it up.
func (st *state) keep(a netip.Addr, service int) {
	if !st.holds(a, service) {
		st.take(a, service)
		return
	}
	namespace, p := st.services[service].Key.Namespace, st.poolOf(a)
	if kept := st.quotaUsage.keep(p, claim{a, service}, namespace); !kept {
		return
	}
	if p != nil && p.ExternalIPs {
		st.externals[namespace]--
	}
}

func (st *state) taken(a netip.Addr) bool {
	_, ok := st.holder[a]
	return ok
}

// take assigns an address to a Service, given by its index in services. The address is free, or its holders share it
// or are about to give it up.
func (st *state) take(a netip.Addr, service int) {
	s, p := st.services[service], st.poolOf(a)
	reservedFor, kept := st.reservations[a]
	usable := p != nil && st.usable(p, a)
	if !usable || !p.canAllocate() || kept && reservedFor != s.Key || !kept && !p.admits(s) {
		st.ineligible[claim{a, service}] = true
	}
	if p != nil {
		st.quotaUsage.count(p, a, s.Key.Namespace)
	}
	if st.taken(a) {
		st.addSharer(st.sharersOf(a), a, service)
		return
	}
	st.holder[a] = service
	if s.SharingKey != "" {
		at := sharingGroup{s.SharingKey, world.FamilyOf(a), s.Key.Namespace}
		if p != nil && p.SharedByCluster {
			at.namespace = ""
		}
		st.groups[at] = append(st.groups[at], sharedAddr{a, len(st.holder)})
	}
	if st.load != nil {
		st.count(a)
	}
	if p == nil {
		return
	}
	switch wasCoolingDown := st.endCooldown(a); {
	case !usable || p.External != nil:
	case kept:
		p.freeList(world.FamilyOf(a)).keptUsed++
	case !wasCoolingDown:
		p.freeList(world.FamilyOf(a)).markUsed(a)
	}
	u := st.use[p.Name]
	if world.FamilyOf(a) == world.IPv4 {
		u.Assigned4++
	} else {
		u.Assigned6++
	}
	st.use[p.Name] = u
}

func (st *state) count(a netip.Addr) {
	if load := st.loadOf(st.poolName(a), a); load != &st.unplaced {
		*load++
	}
}

// loadOf returns the counter of the shard that an address would be in.
func (st *state) loadOf(pool string, a netip.Addr) *int {
	if st.load == nil {
		st.load = make(map[world.ShardID]*int)
		for a := range st.holder {
			st.count(a)
		}
	}
	id, ok := st.shardOf(pool, a)
	if !ok {
		return &st.unplaced
	}
	n := st.load[id]
	if n == nil {
		n = new(int)
		st.load[id] = n
	}
	return n
}

func (pi *poolIndex) poolName(a netip.Addr) string {
	if p := pi.poolOf(a); p != nil {
		return p.Name
	}
	return ""
}

// usage returns the usage of each pool. A pool that allocates nothing has no available addresses.
func (st *state) usage() map[string]PoolUsage {
	leases := st.leases()
	for _, p := range st.pools {
		u := st.use[p.Name]
		u.Capacity4, u.Capacity6 = plus(p.v4.size, p.v4.kept), plus(p.v6.size, p.v6.kept)
		u.Reserved4, u.Reserved6 = p.v4.kept-p.v4.keptUsed, p.v6.kept-p.v6.keptUsed
		if p.canAllocate() && st.suspended.Reason == "" {
			u.Available4, u.Available6 = p.v4.free(), p.v6.free()
		}
		u.Leases, u.External = leases[p], p.External != nil
		u.ClaimReason, u.ClaimMessage = st.claimUsage(p)
		u.Problems, u.Suspended = p.problemMessages(), st.suspended
		st.use[p.Name] = u
	}
	return st.use
}
