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
	// foreign are the addresses inside pools that are in use outside of the pools. uses has what single addresses among
	// them are used for, sorted, and netUses what ranges are used for. Kubelets decide how many addresses nodes have.
	foreign       []netipx.IPRange
	uses, netUses []foreignUse
	// allUses are all uses, inside and outside pools. addrUses has the single addresses among them and networks the
	// ranges. Both are nil until usedAs needs them.
	allUses  []foreignUse
	addrUses map[netip.Addr]foreignUse
	networks []foreignUse
	// reservations maps a reserved address to its Service (spec.reservations). reservationsByService maps a Service to
	// the addresses reserved for it, in the order of the pools.
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
	// announcesAll means that an object announces the addresses of every Service, and announces are the selectors of
	// those that announce the addresses of some only.
	announcesAll bool
	announces    []world.Selector
	// subnets are those of the L2Domains without errors that have the pool. anySubnet means that a BGPAdvertisement
	// announces its addresses outside of them, too.
	subnets   []netip.Prefix
	anySubnet bool
	// problems are the problems to report. unreported counts the others.
	problems   []string
	unreported int
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
	if p.External != nil {
		return contains(p.Ranges, a)
	}
	return slices.ContainsFunc(p.Ranges, func(r netipx.IPRange) bool { return r.Contains(a) })
}

func newPoolIndex(w *world.Snapshot) *poolIndex {
	pi := &poolIndex{
		byName: make(map[string]*pool, len(w.Pools)), reservations: make(map[netip.Addr]world.Key),
		reservationsByService: make(map[world.Key][]netip.Addr),
		conflicts:             w.Conflicts, suspended: suspended(&w.Cluster),
	}
	provided := externalRanges(w)
	for _, wp := range w.Pools {
		if wp.External != nil {
			own := *wp
			own.Ranges = provided[wp.Name]
			wp = &own
		}
		p := &pool{Pool: wp, excluded: union(wp.Exclude)}
		if w.EgressIPsUnread != "" {
			p.problems = append(p.problems, w.EgressIPsUnread)
		}
		pi.pools = append(pi.pools, p)
		pi.byName[wp.Name] = p
	}
	owned := make(map[*pool][]netipx.IPRange, len(pi.pools))
	slices.SortFunc(pi.pools, func(x, y *pool) int {
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.Name, y.Name))
	})
	for _, p := range pi.pools {
		owned[p] = pi.claimRanges(p)
	}
	pi.findAnnouncers(w)
	pi.pools = inOrderFor(&world.Service{}, pi.pools)

	pi.allUses = foreignUses(w)
	pi.addForeignUses(pi.allUses)
	for _, p := range pi.pools {
		if p.External != nil {
			continue // no address is free: each belongs to a Service
		}
		kept := pi.addReservations(p)
		for _, r := range kept {
			if pi.usable(p, r.From()) {
				p.freeList(world.FamilyOf(r.From())).kept++
			}
		}
		withheld := union(slices.Concat(p.excluded, pi.foreign, kept))
		for _, r := range owned[p] {
			for _, r := range minus(r, withheld) {
				p.freeList(world.FamilyOf(r.From())).add(r, p.AvoidBuggyIPs)
			}
		}
	}
	return pi
}

// claimRanges makes p the owner of its ranges, except for the parts that older pools own. It returns the parts that p
// owns, in the order of its ranges.
func (pi *poolIndex) claimRanges(p *pool) []netipx.IPRange {
	var got []netipx.IPRange
	for _, r := range p.Ranges {
		first, end := overlapping(pi.ranges, r)
		for i := first; i < end; i++ {
			if o := pi.owners[i]; o != p {
				p.addProblem(p.field()+": %s belongs to pool %q, the older one", common(r, pi.ranges[i]), o.Name)
			}
		}
		pieces := minus(r, pi.ranges)
		for _, piece := range pieces {
			at := find(pi.ranges, piece.From())
			pi.ranges = slices.Insert(pi.ranges, at, piece)
			pi.owners = slices.Insert(pi.owners, at, p)
		}
		got = append(got, pieces...)
	}
	return got
}

// addReservations records the reservations of p for addresses that it owns, and returns these addresses.
func (pi *poolIndex) addReservations(p *pool) []netipx.IPRange {
	var ranges []netipx.IPRange
	for _, r := range p.Reservations {
		for _, a := range r.Addrs {
			if _, twice := pi.reservations[a]; twice || pi.poolOf(a) != p {
				continue
			}
			pi.reservations[a] = r.Service
			pi.reservationsByService[r.Service] = append(pi.reservationsByService[r.Service], a)
			ranges = append(ranges, netipx.IPRangeFrom(a, a))
		}
	}
	return ranges
}

// reservedFor returns the address of a family that is reserved for a Service. Of several, it returns the one in the
// pool that is tried first.
func (pi *poolIndex) reservedFor(s *world.Service, f world.Family) netip.Addr {
	for _, a := range pi.reservationsByService[s.Key] {
		if world.FamilyOf(a) == f && (s.RequestedPool == "" || s.RequestedPool == pi.poolName(a)) {
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
	if problem := fmt.Sprintf(format, RangeText(r), other); !slices.Contains(p.problems, problem) {
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

// poolOf returns the pool that an address belongs to, or nil if it is in none.
func (pi *poolIndex) poolOf(a netip.Addr) *pool {
	if i := find(pi.ranges, a); i < len(pi.ranges) && pi.ranges[i].Contains(a) {
		return pi.owners[i]
	}
	return nil
}

// usable reports whether p, the owner of a, may allocate it to a Service at all.
func (pi *poolIndex) usable(p *pool, a netip.Addr) bool {
	return !contains(p.excluded, a) && !contains(pi.foreign, a) && (!p.AvoidBuggyIPs || !buggy(a))
}

// unusable returns why p, the owner of a, does not allocate it to the Service, or an empty string if it does.
func (pi *poolIndex) unusable(p *pool, a netip.Addr, service world.Key) string {
	return pi.unusableExcept(p, a, service)
}

// unusableExcept is like unusable but ignores uses in some roles.
func (pi *poolIndex) unusableExcept(p *pool, a netip.Addr, service world.Key, roles ...string) string {
	for _, r := range p.Exclude {
		if r.Contains(a) {
			return fmt.Sprintf("%s: pool %q excludes %s", a, p.Name, RangeText(r))
		}
	}
	if p.AvoidBuggyIPs && buggy(a) {
		return fmt.Sprintf("%s: pool %q avoids addresses that end in .0 or .255 (avoidBuggyIPs)", a, p.Name)
	}
	if contains(pi.foreign, a) {
		if use := pi.firstUse(a, roles); use.role != "" {
			return fmt.Sprintf("%s is %s", a, use.describe(service))
		}
	}
	if reservedFor, kept := pi.reservations[a]; kept && reservedFor != service {
		return fmt.Sprintf("%s: pool %q reserves it for %s (spec.reservations)", a, p.Name, nameFor(service, reservedFor))
	}
	return ""
}

// RangeText formats a range as a user would write it.
func RangeText(r netipx.IPRange) string {
	if r.From() == r.To() {
		return r.From().String()
	}
	if p, ok := r.Prefix(); ok {
		return p.String()
	}
	return r.String()
}
