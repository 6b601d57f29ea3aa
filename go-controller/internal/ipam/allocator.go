// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// allocator serves one Service after the other.
type allocator struct {
	*state
	// autoAssign are the pools that serve Services that name no pool.
	autoAssign []*pool
}

// messages collects the messages about a Service. The first reason is kept.
type messages struct {
	reason Reason
	// waits is set if there is a reason that may end when others release addresses.
	waits  bool
	texts  []string
	length int
}

// maxMessages is the length in bytes from which no more messages are added. A Service may have a message for each of
// tens of thousands of addresses, and a condition has 1024 bytes.
const maxMessages = 4096

func (m *messages) add(reason Reason, message string) {
	if message == "" {
		return
	}
	// A family that the pools never have is no cause while the other one waits for its claim.
	precedes := m.reason == ReasonFamilyUnavailable && reason.isAboutClaim()
	if m.reason == "" || precedes {
		m.reason = reason
	}
	m.waits = m.waits || reason.mayEnd()
	// Both families may lack an address for one reason.
	if m.length < maxMessages && (len(m.texts) == 0 || m.texts[len(m.texts)-1] != message) {
		at := len(m.texts)
		if precedes {
			at = 0
		}
		m.texts, m.length = slices.Insert(m.texts, at, message), m.length+len(message)
	}
}

// allocate allocates what a Service lacks and moves it to the address or pool that it requests. The Service loses an
// address that it has only when it gets a replacement. waits is set if it may get more addresses, or other ones, when
// others release theirs.
func (al *allocator) allocate(service int, own ownership, ext external) (o Outcome, waits bool) {
	s := al.services[service]
	var msgs messages
	var releases []netip.Addr
	gets := own.has
	if own.foreign {
		msgs.add(ReasonForeignAddress, "status.loadBalancer.ingress: "+own.refused+"; another controller wrote it, so it is "+
			"neither announced nor changed, "+
			"and the Service gets no address until it is cleared or spec.loadBalancerClass names the controller")
	} else if len(s.Problems) > 0 {
		msgs.add(ReasonInvalidRequest, strings.Join(s.Problems, "; "))
	} else if al.suspended.Reason != "" {
		if al.needsAddress(s, own.has) {
			msgs.add(al.suspended.Reason, al.suspended.Message)
		}
	} else if requested, reason, message := al.request(service, own.has); reason != "" {
		msgs.add(reason, message)
	} else {
		releases = al.grant(service, requested, &gets, &msgs)
	}
	if own.conflicting.IsValid() && msgs.reason != ReasonAddressInUse {
		holder, format := al.services[own.conflictingHolder], "%s, which was in the status, belongs to %s, the older one"
		if al.titleTo(holder, own.conflicting) != al.titleTo(s, own.conflicting) {
			format = "%s, which another controller wrote into the status, belongs to %s"
		}
		msgs.add(ReasonAddressInUse, fmt.Sprintf(format, own.conflicting, nameFor(s.Key, holder.Key))+
			al.notShared(own.conflicting, service, own.conflictingHolder, own.conflictingReason))
	}
	if own.refused != "" && !own.foreign {
		msgs.add(ReasonForeignAddress, "status.loadBalancer.ingress: "+own.refused+"; another controller wrote it, and it "+
			"is not kept")
	}
	for _, message := range ext.messages.texts {
		msgs.add(ext.messages.reason, message)
	}
	msgs.waits = msgs.waits || ext.messages.waits
	o = al.outcome(service, own.has, gets, &msgs)
	o.External, o.HeldExternal, o.Foreign, o.Releases = ext.addrs, ext.held, own.foreign, releases
	return o, msgs.waits
}

// grant fills gets: first the requested addresses, then one per family that is missing or that must move to another
// pool. It returns Outcome.Releases.
func (al *allocator) grant(service int, requested perFamily, gets *perFamily, msgs *messages) (releases []netip.Addr) {
	s := al.services[service]
	own, had := *gets, !gets.empty()
	var missing []world.Family
	for _, f := range families(s) {
		switch has := *gets.of(f); {
		case requested.of(f).IsValid():
			*gets.of(f) = *requested.of(f)
		case !has.IsValid(), al.requestsOtherPool(s, has):
			missing = append(missing, f)
		}
	}
	var drawn [2]*pool
	var provided []*pool
	if len(missing) > 0 {
		pools, reason, message := al.candidates(s, *gets)
		if reason != "" {
			msgs.add(reason, message)
		} else {
			missing = al.reuseCooldownAddr(allocationRequest{service, own, *gets}, gets, pools, missing)
			missing = al.share(service, own, gets, pools, missing)
			drawn = al.choose(allocationRequest{service, own, *gets}, pools, missing, msgs)
			provided, releases = al.provideAll(service, missing, &drawn, gets, msgs)
		}
	}
	if msgs.reason != "" && s.FamilyPolicy == world.RequireDualStack && !had {
		for _, p := range provided { // Their claims stay, and count, until the Service gets both addresses.
			al.quotaUsage.waiting[quotaKey{p.Name, s.Key.Namespace}]++
		}
		*gets = perFamily{}
		return nil
	}
	for i, f := range missing {
		if p := drawn[i]; p != nil {
			a, ok := al.draw(p.freeList(f), p.Name)
			*gets.of(f) = a
			al.cursorExhausted = al.cursorExhausted || !ok
		}
	}
	for _, f := range families(s) {
		a, before := *gets.of(f), *own.of(f)
		if a.IsValid() {
			al.keep(a, service)
		}
		if before.IsValid() && a != before {
			al.quotaUsage.exchange(al.poolOf(before), before, s.Key.Namespace)
		}
	}
	return releases
}

// requestsOtherPool reports whether the Service requests another pool than the one that its address is in. It returns
// false for an address in no pool, and for one that came from the requested pool and is in another one now, because the
// Service did not choose to leave its pool.
func (al *allocator) requestsOtherPool(s *world.Service, has netip.Addr) bool {
	return al.leftRequestedPool(s, has) && !slices.Contains(s.FromRequested, has)
}

// leftRequestedPool reports whether an address is in another pool than the requested one.
func (al *allocator) leftRequestedPool(s *world.Service, has netip.Addr) bool {
	if s.RequestedPool == "" || al.poolName(has) == "" {
		return false
	}
	p := al.byName[s.RequestedPool]
	return p == nil || !p.covers(has)
}

// candidates returns the pools that a Service may draw from, in order of preference.
func (al *allocator) candidates(s *world.Service, gets perFamily) ([]*pool, Reason, string) {
	if s.RequestedPool != "" {
		p := al.byName[s.RequestedPool]
		if p == nil {
			reason, message := notFound(s)
			return nil, reason, message
		}
		if !p.canAllocate() {
			reason, message := p.unavailableReason()
			return nil, reason, s.PoolRequestedBy + ": " + message
		}
		if why := p.admissionError(s); why != "" {
			return nil, ReasonNotAdmitted, s.PoolRequestedBy + ": " + why
		}
		return []*pool{p}, "", ""
	}
	pools := al.autoAssignFor(s)
	if gets.empty() {
		return pools, "", ""
	}
	// The second family comes from the pool of the first one if that pool has the family.
	var first []*pool
	for _, f := range families(s) {
		a := *gets.of(f)
		p := al.poolOf(a)
		if p == nil || !p.canAllocate() || !p.admits(s) || slices.Contains(first, p) {
			continue
		}
		if p.AutoAssign || slices.Contains(s.Requested, a) || al.reservations[a] == s.Key {
			first = append(first, p)
		}
	}
	if len(first) == 0 {
		return pools, "", ""
	}
	others := slices.DeleteFunc(slices.Clone(pools), func(p *pool) bool { return slices.Contains(first, p) })
	return append(first, others...), "", ""
}

// autoAssignFor returns the autoAssign pools that serve a Service, in order of preference.
func (al *allocator) autoAssignFor(s *world.Service) []*pool {
	notAdmitted := func(p *pool) bool { return !p.admits(s) }
	someOnly := func(p *pool) bool { return !p.announcesAll && len(p.announces) > 0 }
	pools := al.autoAssign
	if slices.ContainsFunc(pools, notAdmitted) {
		pools = slices.DeleteFunc(slices.Clone(pools), notAdmitted)
	}
	if slices.ContainsFunc(pools, someOnly) {
		pools = inOrderFor(s, pools)
	}
	return pools
}

// allocationRequest is a Service with the addresses that it had and those that it gets so far.
type allocationRequest struct {
	service   int // index in state.services
	had, gets perFamily
}

// choose selects the pool for each missing family (at most two): the first pool that has all of them, or else the
// first pool for each.
func (al *allocator) choose(r allocationRequest, pools []*pool, missing []world.Family,
	msgs *messages) (chosen [2]*pool) {
	for _, p := range pools {
		lacks := slices.ContainsFunc(missing, func(f world.Family) bool { return !p.supplies(f) })
		if !lacks && al.withinQuota(p, r.service, r.had, r.gets, len(missing)) {
			for i := range missing {
				chosen[i] = p
			}
			return chosen
		}
	}
	for i, f := range missing {
		for _, p := range pools {
			n := 1
			if chosen[0] == p {
				n = 2
			}
			if p.supplies(f) && al.withinQuota(p, r.service, r.had, r.gets, n) {
				chosen[i] = p
				break
			}
		}
		if chosen[i] == nil {
			msgs.add(al.exhausted(al.services[r.service], pools, f))
		}
	}
	return chosen
}

// exhausted returns why none of the pools has an address of a family.
func (al *allocator) exhausted(s *world.Service, pools []*pool, f world.Family) (Reason, string) {
	const most = 5
	reason := ReasonPoolExhausted
	var counts []string
	for _, p := range pools {
		count := p.freeList(f).counts(p, f)
		if p.supplies(f) {
			reason, count = ReasonQuotaExceeded, al.quotaMessage(p, s)
		}
		if (p.freeList(f).size > 0 || p.supplies(f)) && !slices.Contains(counts, count) {
			counts = append(counts, count)
		}
	}
	switch {
	case len(pools) == 0:
		return ReasonNoPool, "no pool allocates to this Service automatically (spec.autoAssign and spec.serviceAllocation " +
			"of the pools)"
	case len(counts) == 0 && len(pools) == 1:
		return ReasonFamilyUnavailable, fmt.Sprintf("pool %q has no usable %s addresses", pools[0].Name, f)
	case len(counts) == 0:
		return ReasonFamilyUnavailable, fmt.Sprintf("none of the pools that serve this Service has usable %s addresses", f)
	case len(counts) > most:
		counts = append(counts[:most], "and "+world.Count(len(counts)-most, "more pool"))
	}
	return reason, strings.Join(counts, "; ")
}

// outcome assembles the Outcome of a Service, with a remark on each address that the Service keeps although it would
// not get it today.
func (al *allocator) outcome(service int, had, gets perFamily, msgs *messages) Outcome {
	s := al.services[service]
	var both [2]netip.Addr
	addrs := both[:0]
	for _, f := range families(s) {
		a := *gets.of(f)
		if !a.IsValid() {
			continue
		}
		addrs = append(addrs, a)
		keeps := "; the Service keeps it until it is recreated or requests another"
		if p := al.poolOf(a); p != nil && p.External != nil { // No address can be requested of a provider.
			keeps = "; the Service keeps it until it is recreated"
		}
		if why := al.contested(a); why != "" {
			msgs.add(ReasonAddressConflict, fmt.Sprintf("address %s is %s", a, why)+keeps)
		} else if a == *had.of(f) && (al.ineligible[claim{a, service}] || al.unbacked(a)) {
			msgs.add(ReasonAddressRetained, al.ineligibleMessage(s, a)+keeps)
		} else if a == *had.of(f) && al.leftRequestedPool(s, a) && !al.requestsOtherPool(s, a) {
			msgs.add(ReasonAddressRetained, fmt.Sprintf("address %s is in pool %s now", a, al.poolName(a))+keeps)
		}
	}
	o := Outcome{Reason: msgs.reason, Message: strings.Join(msgs.texts, "; ")}
	if len(addrs) == 0 {
		return o
	}
	o.Pool = al.poolName(addrs[0])
	o.Addrs = s.Assigned
	if !slices.Equal(addrs, s.Assigned) {
		o.Addrs = slices.Clone(addrs)
	}
	if len(addrs) < len(families(s)) {
		o.Reason, msgs.waits = ReasonPartlyAllocated, true
	}
	return o
}

// ineligibleMessage returns why no pool would allocate an ineligible address to the Service.
func (al *allocator) ineligibleMessage(s *world.Service, a netip.Addr) string {
	p := al.poolOf(a)
	if p == nil {
		return fmt.Sprintf("address %s is in no pool now", a)
	}
	if !p.canAllocate() {
		_, closed := p.unavailableReason()
		return fmt.Sprintf("address %s: %s", a, closed)
	}
	if why := p.admissionError(s); why != "" && al.reservations[a] != s.Key {
		return fmt.Sprintf("address %s: %s", a, why)
	}
	if al.unbacked(a) {
		return al.unbackedMessage(p, s, a)
	}
	return "address " + al.unusable(p, a, s.Key)
}
