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

// addForeignUses records the uses that are inside a pool.
func (pi *poolIndex) addForeignUses(all []foreignUse) {
	for _, res := range all {
		if first, end := overlapping(pi.ranges, res.IPRange); first < end {
			pi.uses = append(pi.uses, res)
			pi.foreign = append(pi.foreign, res.IPRange)
		}
	}
	pi.foreign = union(pi.foreign)
	slices.SortFunc(pi.uses, foreignUse.compare)
	for _, res := range pi.uses {
		if !res.isMisconfiguration {
			continue
		}
		first, end := overlapping(pi.ranges, res.IPRange)
		for i := first; i < end; i++ {
			pi.owners[i].addProblem(pi.owners[i].field()+": %s is %s and is not allocated", common(res.IPRange, pi.ranges[i]),
				res.String())
		}
	}
	isNet := func(u foreignUse) bool { return u.From() != u.To() }
	pi.netUses = slices.DeleteFunc(slices.Clone(pi.uses), func(u foreignUse) bool { return !isNet(u) })
	pi.uses = slices.DeleteFunc(pi.uses, isNet)
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

func (f foreignUse) compare(o foreignUse) int {
	return cmp.Or(f.From().Compare(o.From()), f.To().Compare(o.To()), cmp.Compare(f.role, o.role),
		cmp.Compare(f.user, o.user))
}

func (f foreignUse) String() string { return f.role + " " + f.user }

// foreignUses returns all uses of addresses outside the pools, in no order.
func foreignUses(w *world.Snapshot) []foreignUse {
	all := make([]foreignUse, 0, 2*len(w.Nodes))
	// Most nodes have the same next hops. The first node by name is the user of each.
	hops := map[netip.Addr]string{}
	for _, n := range w.Nodes {
		for _, a := range n.NextHops {
			if first, known := hops[a]; !known || n.Name < first {
				hops[a] = n.Name
			}
		}
		for _, a := range n.Addrs {
			all = append(all, foreignUse{netipx.IPRangeFrom(a, a), nodeRole, n.Name, true})
		}
	}
	for a, node := range hops {
		all = append(all, foreignUse{netipx.IPRangeFrom(a, a), hopRole, node, true})
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
		if c == (world.Conflict{}) {
			continue // It is held by the Service that it belongs to.
		}
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

// nodeRole and hopRole are the roles of addresses that nodes themselves report.
const nodeRole, hopRole = "an address of node", "the next hop of node"

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
			return fmt.Sprintf("%s is %s", a, use.String())
		}
	}
	if reservedFor, kept := pi.reservations[a]; kept && reservedFor != service {
		return fmt.Sprintf("%s: pool %q reserves it for %s (spec.reservations)", a, p.Name, nameFor(service, reservedFor))
	}
	return ""
}

// firstUse returns the first use of an address inside a pool that is in none of some roles, or the zero value.
func (pi *poolIndex) firstUse(a netip.Addr, roles []string) foreignUse {
	var first foreignUse
	counts := func(u foreignUse) bool {
		return !slices.Contains(roles, u.role) && (first.role == "" || u.compare(first) < 0)
	}
	at, _ := slices.BinarySearchFunc(pi.uses, a, func(u foreignUse, a netip.Addr) int { return u.From().Compare(a) })
	for ; at < len(pi.uses) && pi.uses[at].From() == a && first.role == ""; at++ {
		if counts(pi.uses[at]) {
			first = pi.uses[at]
		}
	}
	for _, u := range pi.netUses {
		if u.Contains(a) && counts(u) {
			first = u
		}
	}
	return first
}

// usedAs returns what an address that is in no pool is used for inside of the cluster, or an empty string.
func (pi *poolIndex) usedAs(a netip.Addr) string {
	if pi.addrUses == nil {
		pi.addrUses = make(map[netip.Addr]foreignUse, len(pi.allUses))
		for _, u := range pi.allUses {
			if u.role == conflictRole {
				continue // possibly by the controller that allocated it
			}
			if u.From() != u.To() {
				pi.networks = append(pi.networks, u)
			} else if other, ok := pi.addrUses[u.From()]; !ok || u.compare(other) < 0 {
				pi.addrUses[u.From()] = u
			}
		}
		slices.SortFunc(pi.networks, foreignUse.compare)
	}
	if u, ok := pi.addrUses[a]; ok {
		return u.String()
	}
	for _, u := range pi.networks {
		if u.Contains(a) {
			return u.String()
		}
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
