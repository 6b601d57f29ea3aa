// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A pool with spec.externalPool has no addresses of its own: a provider chooses each of them when it fulfils an
// IPAddressClaim. Which addresses are the pool's follows from two facts: a Service has it from the pool according to
// its status, or it is the address of a claim for the pool. The former needs no claim, so that nodes, which read none,
// decide the same, and so that a Service keeps its address, in its pool, whatever happens to claims, IPAddresses, and
// the provider.

// claimState is what a pass knows and decides about the claims of external pools.
type claimState struct {
	*world.Claims
	forwarding forwarding
	// byAddr are the claims with an address, and byUID those of a Service, by name. services are the Services, by UID.
	byAddr   map[netip.Addr][]*world.Claim
	byUID    map[string][]*world.Claim
	services map[string]int
	// wanted are the claims that must exist or stay, by name.
	wanted map[string]*world.WantedClaim
	// waiting are the first Services with a sharing key that wait for a claim.
	waiting map[claimGroup]int
	// failures are why the claims of a pool are not usable.
	failures map[*pool]*claimFailure
	// counted are the claims, by name, that countClaims counts for a quota.
	counted map[string]bool
	// asked counts the calls of provide.
	asked int
}

// claimGroup are the Services that may share an address of an external pool.
type claimGroup struct {
	sharingGroup
	pool string
}

// claimFailure is the first of some failures.
type claimFailure struct {
	reason  Reason
	message string
	more    int
}

func newClaimState(w *world.Snapshot) *claimState {
	k := w.Claims
	st := &claimState{Claims: k, forwarding: newForwarding(&w.Cluster), byAddr: map[netip.Addr][]*world.Claim{},
		byUID: map[string][]*world.Claim{}, services: map[string]int{},
		wanted: map[string]*world.WantedClaim{}, waiting: map[claimGroup]int{}, failures: map[*pool]*claimFailure{},
		counted: map[string]bool{}}
	if k == nil {
		return st
	}
	for _, name := range slices.Sorted(maps.Keys(k.ByName)) {
		c := k.ByName[name]
		st.byUID[c.UID] = append(st.byUID[c.UID], c)
		if c.Addr.IsValid() {
			st.byAddr[c.Addr] = append(st.byAddr[c.Addr], c)
		}
	}
	return st
}

// indexServices fills services with those that have claims.
func (c *claimState) indexServices(services []*world.Service) {
	if len(c.byUID) == 0 {
		return
	}
	for i, s := range services {
		if c.byUID[s.UID] != nil {
			c.services[s.UID] = i
		}
	}
}

// known reports whether all claims have been read.
func (c *claimState) known() bool { return c.Claims != nil && c.Missing == "" }

func (c *claimState) named(name string) string { return "IPAddressClaim " + c.Namespace + "/" + name }

// externalRanges returns the addresses of each external pool, sorted. An address that only a claim has is not the
// pool's if another pool has it in spec.addresses, whichever is older: who writes IPAddresses must not take it from
// there.
func externalRanges(w *world.Snapshot) map[string][]netipx.IPRange {
	out, pools := map[string][]netipx.IPRange{}, map[string]*world.Pool{}
	var listed []netipx.IPRange
	for _, p := range w.Pools {
		if p.External != nil {
			pools[p.Name] = p
		} else {
			listed = append(listed, p.Ranges...)
		}
	}
	if len(pools) == 0 {
		return nil
	}
	listed = union(listed)
	add := func(p *world.Pool, a netip.Addr) { out[p.Name] = append(out[p.Name], netipx.IPRangeFrom(a, a)) }
	for _, s := range w.Services {
		for i, a := range s.Given {
			if i < len(s.GivenFrom) && pools[s.GivenFrom[i]] != nil &&
				slices.Contains(s.Shown(), a) {
				add(pools[s.GivenFrom[i]], a)
			}
		}
	}
	if w.Claims != nil {
		for _, c := range w.Claims.ByName {
			if p := pools[c.Pool]; p != nil && c.Ref == p.External.PoolRef && !c.Deleting && c.Addr.IsValid() &&
				world.FamilyOf(c.Addr) == p.External.Family && !contains(listed, c.Addr) {
				add(p, c.Addr)
			}
		}
	}
	for name := range out {
		out[name] = union(out[name])
	}
	return out
}

// supplies reports whether the pool may have a free address of a family.
func (p *pool) supplies(f world.Family) bool {
	return p.freeList(f).free() > 0 || p.External != nil && p.External.Family == f
}

// field is the field of the pool that has its addresses.
func (p *pool) field() string {
	if p.External != nil {
		return "externalPool"
	}
	return "addresses"
}

// provideAll fills gets with the addresses that claims have for a Service, where the pool chosen for a family is
// external. It removes these pools from chosen. It returns the pools whose provider has given an address, and the
// addresses that wait for others to take their place.
func (al *allocator) provideAll(service int, missing []world.Family, chosen *[2]*pool, gets *perFamily,
	msgs *messages) (provided []*pool, releases []netip.Addr) {
	for i, f := range missing {
		p := chosen[i]
		if p == nil || p.External == nil {
			continue
		}
		chosen[i] = nil
		al.uncount(p, service)
		a, reason, message := al.provide(p, service)
		if reason == "" {
			*gets.of(f), provided = a, append(provided, p)
			continue
		}
		msgs.add(reason, message)
		al.quotaUsage.waiting[quotaKey{p.Name, al.services[service].Key.Namespace}]++
		if has := *gets.of(f); has.IsValid() {
			releases = append(releases, has)
		}
	}
	return provided, releases
}

// provide returns the address of the claim of a Service, or why there is none. It makes the claim wanted, unless the
// Service waits for another one, whose address it may share.
func (al *allocator) provide(p *pool, service int) (netip.Addr, Reason, string) {
	s, k := al.services[service], al.claims
	k.asked++
	if s.SharingKey != "" {
		group := claimGroup{sharingGroup{s.SharingKey, p.External.Family, s.Key.Namespace}, p.Name}
		if p.SharedByCluster {
			group.namespace = ""
		}
		if first, waits := k.waiting[group]; waits && !al.hasClaimed(p, first) {
			return netip.Addr{}, ReasonClaimPending, fmt.Sprintf("pool %q: %s, which has the same key in allow-shared-ip and "+
				"comes first, waits for its IPAddressClaim", p.Name, nameFor(s.Key, al.services[first].Key))
		}
		k.waiting[group] = service
	}
	name := world.ClaimName(p.Pool, s.UID)
	k.wanted[name] = &world.WantedClaim{Name: name, Pool: p.Name, Ref: p.External.PoolRef, Service: s.Key, UID: s.UID}
	a, reason, why := al.claimed(p, service, name)
	if reason == "" {
		return a, "", ""
	}
	message := fmt.Sprintf("pool %q: %s", p.Name, why)
	if reason != ReasonClaimPending {
		k.fail(p, reason, why)
	}
	return netip.Addr{}, reason, message
}

// hasClaimed reports whether a Service has the address of its claim: the others with its key have been offered it.
func (al *allocator) hasClaimed(p *pool, service int) bool {
	if al.claims.Claims == nil {
		return false
	}
	c := al.claims.ByName[world.ClaimName(p.Pool, al.services[service].UID)]
	return c != nil && c.Addr.IsValid() && al.holds(c.Addr, service)
}

func (c *claimState) fail(p *pool, reason Reason, message string) {
	if f := c.failures[p]; f != nil {
		f.more++
	} else {
		c.failures[p] = &claimFailure{reason: reason, message: message}
	}
}

// claimed returns the address of a claim for a Service, or why it can't have it.
func (al *allocator) claimed(p *pool, service int, name string) (netip.Addr, Reason, string) {
	k := al.claims
	if !k.known() {
		why := fmt.Sprintf("the provider of %s chooses the address", p.External.PoolRef)
		if k.Claims != nil {
			why = k.Missing
		}
		return netip.Addr{}, ReasonClaimPending, why
	}
	c, subject := k.ByName[name], k.named(name)
	none := func(reason Reason, why string) (netip.Addr, Reason, string) {
		return netip.Addr{}, reason, subject + " " + why
	}
	switch {
	case c == nil && k.Refused[name] != "":
		return none(ReasonClaimPending, "could not be created: "+k.Refused[name])
	case c == nil && al.services[service].UID == "": // of `kubectl slb plan`: the name has the UID
		return netip.Addr{}, ReasonClaimPending, "an IPAddressClaim in namespace " + k.Namespace + " will be created"
	case k.Deleted[name] && (c == nil || c.Deleting):
		return none(ReasonClaimPending, "is deleted again and again by another client, and is created again within a minute")
	case c == nil:
		return none(ReasonClaimPending, "is being created")
	case c.Deleting:
		return none(ReasonClaimPending, "is being deleted, and is created again afterwards")
	case c.Ref != p.External.PoolRef:
		return none(ReasonClaimUnusable, fmt.Sprintf("is for %s, not for %s: delete it", c.Ref, p.External.PoolRef))
	case c.Problem != "":
		return none(ReasonClaimUnusable, "has no usable address: "+c.Problem)
	case c.Refusal != "":
		return none(ReasonClaimRefused, fmt.Sprintf("is refused by the provider of %s: %s", c.Ref, c.Refusal))
	case !c.Addr.IsValid():
		return none(ReasonClaimPending, fmt.Sprintf("has not been fulfilled yet by the provider of %s", c.Ref))
	}
	if why := al.unusableFrom(p, c.Addr, service); why != "" {
		return none(ReasonClaimUnusable, fmt.Sprintf("has address %s, which cannot be allocated: %s", c.Addr, why))
	}
	return c.Addr, "", ""
}

// unusableFrom returns why a Service can't have the address of its claim, or an empty string if it can.
func (al *allocator) unusableFrom(p *pool, a netip.Addr, service int) string {
	s := al.services[service]
	switch owner := al.poolOf(a); {
	case world.FamilyOf(a) != p.External.Family:
		return fmt.Sprintf("spec.externalPool.ipFamily of the pool is %s", p.External.Family)
	case owner != nil && owner != p:
		return fmt.Sprintf("it is in pool %q", owner.Name)
	}
	if why := al.unusable(p, a, s.Key); why != "" {
		return why
	}
	if use := al.claims.forwarding.use(p, a); use != "" {
		return "it is " + use
	}
	if !p.anySubnet && len(p.subnets) > 0 && !p.hasSubnetWith(a) {
		return fmt.Sprintf("it is in no subnet of an L2Domain that has the pool: %s", prefixesText(p.subnets))
	}
	if other, why := al.conflictingHolder(a, service); why != "" {
		return "it belongs to " + nameFor(s.Key, al.services[other].Key) + al.notShared(a, service, other, why)
	}
	return ""
}

// hasSubnetWith reports whether an L2Domain that has the pool has a subnet with the address.
func (p *pool) hasSubnetWith(a netip.Addr) bool {
	return slices.ContainsFunc(p.subnets, func(n netip.Prefix) bool { return n.Contains(a) })
}

// maxSubnets is the maximum number of subnets in a message.
const maxSubnets = 3

func prefixesText(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return world.Some(texts, maxSubnets)
}

// unrequestable returns why an address in no pool can't be requested, if an external pool would serve the Service.
func (al *allocator) unrequestable(s *world.Service, a netip.Addr) string {
	pools := al.autoAssignFor(s)
	if s.RequestedPool != "" {
		pools = []*pool{al.byName[s.RequestedPool]}
	}
	for _, p := range pools {
		if p.External != nil && p.External.Family == world.FamilyOf(a) {
			return fmt.Sprintf("; the provider of external pool %q chooses the addresses, and none can be requested", p.Name)
		}
	}
	return ""
}

// keepClaims makes claims wanted whose addresses Services have, or may still have according to a status. Of Services
// that share an address it is the claim of the first, which may be gone.
func (st *state) keepClaims(w *world.Snapshot) {
	if w.Claims == nil {
		return
	}
	keep := func(name string) {
		if st.claims.ByName[name] != nil {
			st.claims.wanted[name] = &world.WantedClaim{Name: name, InUse: true}
		}
	}
	leaving := map[netip.Addr]bool{}
	for _, shown := range []map[world.Key][]netip.Addr{w.LeavingShared, w.Unsettled} {
		for _, addrs := range shown {
			for _, a := range addrs {
				leaving[a] = true
			}
		}
	}
	backed := map[netip.Addr]bool{}
	for a := range st.holder {
		p := st.poolOf(a)
		if p == nil || p.External == nil {
			continue
		}
		for _, service := range st.holders(a) {
			name := world.ClaimName(p.Pool, st.services[service].UID)
			keep(name)
			c := st.claims.ByName[name]
			backed[a] = backed[a] || c != nil && c.Addr == a
		}
	}
	for name, c := range st.claims.ByName {
		if st.mayBeRestored(c) {
			keep(name)
		}
		owner := st.poolOf(c.Addr)
		_, left := w.Leaving[c.Addr]
		if c.Addr.IsValid() && (owner == nil || owner.Name == c.Pool) && !backed[c.Addr] && st.backs(c) &&
			(st.taken(c.Addr) || left || leaving[c.Addr]) {
			keep(name)
		}
	}
}

// mayBeRestored reports whether a claim has no address any more, or not yet, and its Service has one of the same pool,
// whose spec.externalPool may have been edited since: the provider may restore the address.
func (st *state) mayBeRestored(c *world.Claim) bool {
	service, exists := st.claims.services[c.UID]
	return exists && !c.Addr.IsValid() && slices.ContainsFunc(st.services[service].Shown(), func(a netip.Addr) bool {
		p := st.poolOf(a)
		return p != nil && p.Name == c.Pool && p.External != nil && st.holds(a, service)
	})
}

// Claims returns the IPAddressClaims that must exist, and those that must stay, by name. If all claims are known, the
// other ones of ours are of no use.
func (a *Allocation) Claims() []*world.WantedClaim {
	byName := func(a, b *world.WantedClaim) int { return strings.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(a.allocator.claims.wanted), byName)
}

// claimUsage returns why an external pool does not get addresses; no reason if it may.
func (st *state) claimUsage(p *pool) (Reason, string) {
	k := st.claims
	if p.External == nil || k.Claims == nil {
		return "", ""
	}
	if k.Missing != "" {
		return ReasonNoClaims, k.Missing
	}
	f := k.failures[p]
	if f == nil {
		return "", ""
	}
	message := f.message
	if f.more > 0 {
		message += fmt.Sprintf("; and %s", world.Count(f.more, "more claim"))
	}
	return f.reason, message
}
