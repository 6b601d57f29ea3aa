// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// poolIndex indexes the pools: which pool each address belongs to, and which addresses are never allocated.
type poolIndex struct {
	// pools are in the order in which they are tried.
	pools  []*pool
	byName map[string]*pool
	// ranges is sorted and disjoint. owners[i] is the pool that ranges[i] belongs to: where pools overlap, the
	// oldest.
	ranges []netipx.IPRange
	owners []*pool
	// foreign are the addresses inside pools that are in use outside of the pools. uses has what they are used for.
	foreign []netipx.IPRange
	uses    []foreignUse
	// allUses are all uses, inside and outside pools. elsewhere has the single addresses among them and networks
	// the ranges. Both are nil until usedAs needs them.
	allUses  []foreignUse
	addrUses map[netip.Addr]foreignUse
	networks []foreignUse
	// reservations maps a reserved address to its Service (spec.reservations). waiting maps a Service to the addresses
	// reserved for it, in the order of the pools.
	reservations          map[netip.Addr]world.Key
	reservationsByService map[world.Key][]netip.Addr
	// conflicts are the addresses that hosts outside of the cluster answer for.
	conflicts map[netip.Addr]world.Conflict
	// suspended is why no pool allocates anything.
	suspended Suspension
}

// pool is a pool with the addresses that it may allocate.
type pool struct {
	*world.Pool
	v4, v6 freeList
	// excluded is the sorted form of Exclude.
	excluded []netipx.IPRange
	// problems are the problems to report. unreported counts the others.
	problems   []string
	unreported int
}

// foreignUse is a range that no pool allocates from: its role, such as "the next hop of L2Domain", and its user.
type foreignUse struct {
	netipx.IPRange
	role, user string
	// isMisconfiguration is set if the overlap is a mistake in the pool. The others are expected, such as the broadcast
	// address in a pool that is a whole subnet.
	isMisconfiguration bool
}

func (p *pool) freeList(f world.Family) *freeList {
	if f == world.IPv4 {
		return &p.v4
	}
	return &p.v6
}

// canAllocate reports whether the pool allocates new addresses.
func (p *pool) canAllocate() bool { return !p.Disabled && len(p.Problems) == 0 }

// unavailableReason returns why a pool that allocates no addresses is closed.
func (p *pool) unavailableReason() (Reason, string) {
	if len(p.Problems) > 0 {
		return ReasonPoolInvalid, fmt.Sprintf("pool %q: %s", p.Name, strings.Join(p.Problems, "; "))
	}
	return ReasonPoolDisabled, fmt.Sprintf("pool %q is disabled", p.Name)
}

// covers reports whether the pool's ranges, as written, contain the address.
func (p *pool) covers(a netip.Addr) bool {
	return slices.ContainsFunc(p.Ranges, func(r netipx.IPRange) bool { return r.Contains(a) })
}

func newPoolIndex(w *world.Snapshot) *poolIndex {
	b := &poolIndex{
		byName: make(map[string]*pool, len(w.Pools)), reservations: make(map[netip.Addr]world.Key),
		reservationsByService: make(map[world.Key][]netip.Addr),
		conflicts:             w.Conflicts, suspended: suspended(&w.Cluster),
	}
	for _, wp := range w.Pools {
		p := &pool{Pool: wp, excluded: union(wp.Exclude)}
		b.pools = append(b.pools, p)
		b.byName[wp.Name] = p
	}
	owned := make(map[*pool][]netipx.IPRange, len(b.pools))
	slices.SortFunc(b.pools, func(x, y *pool) int {
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.Name, y.Name))
	})
	for _, p := range b.pools {
		owned[p] = b.claimRanges(p)
	}
	slices.SortFunc(b.pools, func(x, y *pool) int {
		return cmp.Or(cmp.Compare(x.priority(), y.priority()), cmp.Compare(x.Name, y.Name))
	})

	b.allUses = foreignUses(w)
	b.addForeignUses(b.allUses)
	for _, p := range b.pools {
		kept := b.addReservations(p)
		for _, r := range kept {
			if b.usable(p, r.From()) {
				p.freeList(world.FamilyOf(r.From())).kept++
			}
		}
		withheld := union(slices.Concat(p.excluded, b.foreign, kept))
		for _, r := range owned[p] {
			for _, r := range minus(r, withheld) {
				p.freeList(world.FamilyOf(r.From())).add(r, p.AvoidBuggyIPs)
			}
		}
	}
	return b
}

// claimRanges makes p the owner of its ranges, except for the parts that older pools own. It returns the parts that p
// owns, in the order of its ranges.
func (b *poolIndex) claimRanges(p *pool) []netipx.IPRange {
	var got []netipx.IPRange
	for _, r := range p.Ranges {
		first, end := overlapping(b.ranges, r)
		for i := first; i < end; i++ {
			if o := b.owners[i]; o != p {
				p.addProblem("addresses: %s belongs to pool %q, the older one", common(r, b.ranges[i]), o.Name)
			}
		}
		pieces := minus(r, b.ranges)
		for _, piece := range pieces {
			at := find(b.ranges, piece.From())
			b.ranges = slices.Insert(b.ranges, at, piece)
			b.owners = slices.Insert(b.owners, at, p)
		}
		got = append(got, pieces...)
	}
	return got
}

// addForeignUses records the uses that are inside a pool.
func (b *poolIndex) addForeignUses(all []foreignUse) {
	for _, res := range all {
		if first, end := overlapping(b.ranges, res.IPRange); first < end {
			b.uses = append(b.uses, res)
			b.foreign = append(b.foreign, res.IPRange)
		}
	}
	b.foreign = union(b.foreign)
	slices.SortFunc(b.uses, foreignUse.compare)
	for _, res := range b.uses {
		if !res.isMisconfiguration {
			continue
		}
		first, end := overlapping(b.ranges, res.IPRange)
		for i := first; i < end; i++ {
			b.owners[i].addProblem("addresses: %s is %s and is not allocated", common(res.IPRange, b.ranges[i]), res.String())
		}
	}
}

// addReservations records the reservations of p for addresses that it owns, and returns these addresses.
func (b *poolIndex) addReservations(p *pool) []netipx.IPRange {
	var ranges []netipx.IPRange
	for _, r := range p.Reservations {
		for _, a := range r.Addrs {
			if _, twice := b.reservations[a]; twice || b.poolOf(a) != p {
				continue
			}
			b.reservations[a] = r.Service
			b.reservationsByService[r.Service] = append(b.reservationsByService[r.Service], a)
			ranges = append(ranges, netipx.IPRangeFrom(a, a))
		}
	}
	return ranges
}

// reservedFor returns the address of a family that is reserved for a Service. Of several, it returns the one in the
// pool that is tried first.
func (b *poolIndex) reservedFor(s *world.Service, f world.Family) netip.Addr {
	for _, a := range b.reservationsByService[s.Key] {
		if world.FamilyOf(a) == f && (s.RequestedPool == "" || s.RequestedPool == b.poolName(a)) {
			return a
		}
	}
	return netip.Addr{}
}

// addProblem adds a problem of a range with another object. The first few problems are reported, the others only
// counted.
func (p *pool) addProblem(format string, r netipx.IPRange, other string) {
	const most = 5
	if len(p.problems) >= most {
		p.unreported++
		return
	}
	if problem := fmt.Sprintf(format, formatRange(r), other); !slices.Contains(p.problems, problem) {
		p.problems = append(p.problems, problem)
	}
}

// problemMessages returns the pool's problems in a form that fits a condition.
func (p *pool) problemMessages() []string {
	if p.unreported == 0 {
		return p.problems
	}
	return append(p.problems, fmt.Sprintf("and %d more", p.unreported))
}

func (r foreignUse) compare(o foreignUse) int {
	return cmp.Or(r.From().Compare(o.From()), r.To().Compare(o.To()), cmp.Compare(r.role, o.role),
		cmp.Compare(r.user, o.user))
}

func (r foreignUse) String() string { return r.role + " " + r.user }

// foreignUses returns all uses of addresses outside the pools, in no order.
func foreignUses(w *world.Snapshot) []foreignUse {
	all := make([]foreignUse, 0, 2*len(w.Nodes))
	// Most nodes have the same next hops. The first node by name is the user of each.
	hops := map[netip.Addr]string{}
	for _, n := range w.Nodes {
		for _, a := range n.NextHops {
			if first, told := hops[a]; !told || n.Name < first {
				hops[a] = n.Name
			}
		}
		for _, a := range n.Addrs {
			all = append(all, foreignUse{netipx.IPRangeFrom(a, a), "an address of node", n.Name, true})
		}
	}
	for a, node := range hops {
		all = append(all, foreignUse{netipx.IPRangeFrom(a, a), "the next hop of node", node, true})
	}
	for _, d := range w.Domains {
		for _, s := range d.Subnets {
			if g := s.Gateway; g.IsValid() {
				all = append(all, foreignUse{netipx.IPRangeFrom(g, g), "the next hop of L2Domain", d.Name, true})
			}
			all = append(all, reservedSubnetAddrs(s.Prefix)...)
		}
	}
	for a, c := range w.Conflicts {
		all = append(all, foreignUse{netipx.IPRangeFrom(a, a), conflictRole, describe(c), true})
	}
	for a, service := range w.Leaving {
		all = append(all, foreignUse{netipx.IPRangeFrom(a, a), "still in the status of Service", service.String(), false})
	}
	for _, p := range w.Cluster.PodNets {
		all = append(all, foreignUse{netipx.RangeOfPrefix(p), "in the pod network", p.String(), true})
	}
	for _, p := range w.Cluster.ServiceNets {
		all = append(all, foreignUse{netipx.RangeOfPrefix(p), "in the Service network", p.String(), true})
	}
	for _, p := range w.Cluster.InternalNets {
		all = append(all, foreignUse{netipx.RangeOfPrefix(p), "in OVN-Kubernetes' own network", p.String(), true})
	}
	return all
}

// reservedSubnetAddrs returns the addresses of a segment that hosts must not have: the first (the network itself in
// IPv4; the subnet-router anycast address of RFC 4291 section 2.6.1 in IPv6) and the IPv4 broadcast address. Subnets of
// two addresses or one have none (RFC 3021, RFC 6164).
func reservedSubnetAddrs(p netip.Prefix) []foreignUse {
	if p.Bits() >= p.Addr().BitLen()-1 {
		return nil
	}
	r := netipx.RangeOfPrefix(p)
	list := []foreignUse{{netipx.IPRangeFrom(r.From(), r.From()), "the first address of subnet", p.String(), false}}
	if p.Addr().Is4() {
		list = append(list, foreignUse{netipx.IPRangeFrom(r.To(), r.To()), "the broadcast address of subnet", p.String(),
			false})
	}
	return list
}

// poolOf returns the pool that an address belongs to, or nil if it is in none.
func (b *poolIndex) poolOf(a netip.Addr) *pool {
	if i := find(b.ranges, a); i < len(b.ranges) && b.ranges[i].Contains(a) {
		return b.owners[i]
	}
	return nil
}

// usable reports whether p, the owner of a, may allocate it to a Service at all.
func (b *poolIndex) usable(p *pool, a netip.Addr) bool {
	return !contains(p.excluded, a) && !contains(b.foreign, a) && (!p.AvoidBuggyIPs || !buggy(a))
}

// unusable returns why p, the owner of a, does not allocate it to the Service, or an empty string if it does.
func (b *poolIndex) unusable(p *pool, a netip.Addr, service world.Key) string {
	return b.unusableExcept(p, a, service, "")
}

// unusableExcept is like unusable but ignores uses in one role.
func (b *poolIndex) unusableExcept(p *pool, a netip.Addr, service world.Key, role string) string {
	for _, r := range p.Exclude {
		if r.Contains(a) {
			return fmt.Sprintf("%s: pool %q excludes %s", a, p.Name, formatRange(r))
		}
	}
	if p.AvoidBuggyIPs && buggy(a) {
		return fmt.Sprintf("%s: pool %q avoids addresses that end in .0 or .255 (avoidBuggyIPs)", a, p.Name)
	}
	if contains(b.foreign, a) {
		for _, res := range b.uses {
			if res.Contains(a) && res.role != role {
				return fmt.Sprintf("%s is %s", a, res.String())
			}
		}
	}
	if reservedFor, kept := b.reservations[a]; kept && reservedFor != service {
		return fmt.Sprintf("%s: pool %q reserves it for Service %s (spec.reservations)", a, p.Name, reservedFor)
	}
	return ""
}

// usedAs returns what an address that is in no pool is used for inside of the cluster, or an empty string.
func (b *poolIndex) usedAs(a netip.Addr) string {
	if b.addrUses == nil {
		b.addrUses = make(map[netip.Addr]foreignUse, len(b.allUses))
		for _, u := range b.allUses {
			if u.role == conflictRole {
				continue // possibly by the controller that allocated it
			}
			if u.From() != u.To() {
				b.networks = append(b.networks, u)
			} else if other, ok := b.addrUses[u.From()]; !ok || u.compare(other) < 0 {
				b.addrUses[u.From()] = u
			}
		}
		slices.SortFunc(b.networks, foreignUse.compare)
	}
	if u, ok := b.addrUses[a]; ok {
		return u.String()
	}
	for _, u := range b.networks {
		if u.Contains(a) {
			return u.String()
		}
	}
	return ""
}

// formatRange formats a range as a user would write it.
func formatRange(r netipx.IPRange) string {
	if r.From() == r.To() {
		return r.From().String()
	}
	if p, ok := r.Prefix(); ok {
		return p.String()
	}
	return r.String()
}
