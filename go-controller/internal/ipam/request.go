// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// request returns the addresses that the Service requests or that are reserved for it. A request is all or nothing:
// if one address is refused, the reason is set, and the Service gets nothing new. The message begins with the field
// that makes the request.
func (al *allocator) request(service int, has perFamily) (requested perFamily, reason Reason, message string) {
	s := al.services[service]
	for _, a := range s.Requested {
		f := world.FamilyOf(a)
		if !slices.Contains(families(s), f) {
			return perFamily{}, ReasonInvalidRequest,
				fmt.Sprintf("%s: address %s is %s, but the Service has spec.ipFamilies %v", s.RequestedBy, a, f, families(s))
		}
		if other := *requested.of(f); other.IsValid() && other != a {
			return perFamily{}, ReasonInvalidRequest, fmt.Sprintf("%s: addresses %s and %s are both %s", s.RequestedBy, other, a,
				f)
		}
		if a != *has.of(f) {
			if reason, message := al.refuse(service, a, s.RequestedBy); reason != "" {
				return perFamily{}, reason, message
			}
		}
		*requested.of(f) = a
	}
	requested, reason, message = al.reserved(service, has, requested)
	if reason != "" {
		return perFamily{}, reason, message
	}
	return al.checkQuota(service, has, requested)
}

// requestField returns the name of the field that requests an address: the Service's, or else the pool's.
func (al *allocator) requestField(s *world.Service, a netip.Addr) string {
	if slices.Contains(s.Requested, a) {
		return s.RequestedBy
	}
	return "spec.reservations of pool " + strconv.Quote(al.poolName(a))
}

// checkQuota refuses addresses that exceed the quota of their pool.
func (al *allocator) checkQuota(service int, has, requested perFamily) (perFamily, Reason, string) {
	s, gets := al.services[service], has
	for _, f := range families(s) {
		if a := *requested.of(f); a.IsValid() {
			*gets.of(f) = a
		}
	}
	for _, f := range families(s) {
		a := *requested.of(f)
		if !a.IsValid() || a == *has.of(f) {
			continue
		}
		if p := al.poolOf(a); !al.withinQuota(p, service, has, gets, 0) {
			return perFamily{}, ReasonQuotaExceeded, fmt.Sprintf("%s: address %s: %s", al.requestField(s, a), a,
				al.quotaMessage(p, s))
		}
	}
	return requested, "", ""
}

// reserved adds the addresses that are reserved for a Service to those that it requests, for the families in which it
// has no address. A reservation is a request made by the pool.
func (al *allocator) reserved(service int, has, requested perFamily) (perFamily, Reason, string) {
	s := al.services[service]
	for _, f := range families(s) {
		if has.of(f).IsValid() || requested.of(f).IsValid() {
			continue
		}
		a := al.reservedFor(s, f)
		if !a.IsValid() {
			continue
		}
		if reason, message := al.refuse(service, a, al.requestField(s, a)); reason != "" {
			return perFamily{}, reason, message
		}
		*requested.of(f) = a
	}
	return requested, "", ""
}

// refuse returns why a Service can't have an address that the field by requests, or an empty reason if it can.
func (al *allocator) refuse(service int, a netip.Addr, by string) (Reason, string) {
	s := al.services[service]
	if s.RequestedPool != "" && al.byName[s.RequestedPool] == nil {
		return notFound(s)
	}
	subject := fmt.Sprintf("%s: address %s", by, a)
	p := al.poolOf(a)
	if p == nil {
		return ReasonAddressNotInPool, subject + " is in no pool" + al.unrequestable(s, a)
	}
	if s.RequestedPool != "" && s.RequestedPool != p.Name {
		return ReasonAddressNotInPool, fmt.Sprintf("%s is in pool %q, but %s requests pool %q", subject, p.Name,
			s.PoolRequestedBy, s.RequestedPool)
	}
	if !p.canAllocate() {
		reason, message := p.unavailableReason()
		return reason, subject + ": " + message
	}
	if p.External != nil && !al.taken(a) {
		return ReasonAddressNotInPool, fmt.Sprintf("%s is in external pool %q, whose provider chooses the addresses: none "+
			"can be requested", subject, p.Name)
	}
	return al.denialReason(service, p, a, by, true)
}

// denialReason returns why p, the owner of an address that the field by requests, does not let a Service have it, or an
// empty reason if it does. A host outside of the cluster that answers for the address counts only if contests is set.
func (al *allocator) denialReason(service int, p *pool, a netip.Addr, by string, contests bool) (Reason, string) {
	s, subject := al.services[service], func() string { return fmt.Sprintf("%s: address %s", by, a) }
	if why := p.admissionError(s); why != "" && al.reservations[a] != s.Key {
		return ReasonNotAdmitted, subject() + ": " + why
	}
	if why := al.contested(a); contests && why != "" {
		return ReasonAddressConflict, subject() + " is " + why
	}
	if why := al.unusableExcept(p, a, s.Key, conflictRole); why != "" {
		return ReasonAddressExcluded, by + ": address " + why
	}
	if c := al.cooldowns[a]; c != nil && !c.has[s.Key] {
		return ReasonAddressCoolingDown, fmt.Sprintf("%s: pool %q reserves it for %s, which had it last, until %s "+
			"(spec.reuseDelay)", subject(), p.Name, nameFor(s.Key, c.of[0]), formatTime(c.end()))
	}
	return al.occupied(service, a, subject)
}

// occupied returns why a Service can't have an address that other Services have, or an empty reason if it can.
func (al *allocator) occupied(service int, a netip.Addr, subject func() string) (Reason, string) {
	other, why := al.conflictingHolder(a, service)
	if why == "" {
		return "", ""
	}
	return ReasonAddressInUse, fmt.Sprintf("%s belongs to %s", subject(),
		nameFor(al.services[service].Key, al.services[other].Key)) + al.notShared(a, service, other, why)
}

func notFound(s *world.Service) (Reason, string) {
	return ReasonPoolNotFound, fmt.Sprintf("%s: pool %q does not exist", s.PoolRequestedBy, s.RequestedPool)
}
