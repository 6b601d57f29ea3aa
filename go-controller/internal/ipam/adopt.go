// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// previousAddrs returns the addresses that a Service had. Of the addresses that another controller wrote into its
// status, it includes those that a pool could have allocated.
func (st *state) previousAddrs(service int) ownership {
	s := st.services[service]
	var own ownership
	if own.addrs, own.releasesAddr = st.granted[s.Key]; !own.releasesAddr {
		own.addrs = st.adoptable(s, &own)
	}
	return own
}

// title is why a Service keeps an address: the strongest one comes first.
type title int

const (
	given   title = iota // its status says that we allocated it
	shown                // its status shows it, but another controller may have written it
	granted              // we allocated it, and its status does not show it yet
	cleared              // we allocated it, and another client has removed it from the status
)

// titleTo returns the title of a Service to an address that it had.
func (st *state) titleTo(s *world.Service, a netip.Addr) title {
	switch _, isGranted := st.granted[s.Key]; {
	case !isGranted && s.IsCleared():
		return cleared
	case !slices.Contains(s.Assigned, a):
		return granted
	case slices.Contains(s.Given, a):
		return given
	}
	return shown
}

// adopt lets a Service keep its addresses to which it has the given title, unless a Service with a stronger one, or
// an older one with the same title, has them too and does not share them. Addresses that we allocated stay with their
// Service whatever another controller writes into the status of an older one. The addresses in a status come before
// all that are only granted: if two controllers run at the same time, the other one may have written them. Addresses
// that another client has cleared come last: a Service that was not ours for a while may have lost them meanwhile.
func (st *state) adopt(service int, own *ownership, by title) {
	s := st.services[service]
	for _, a := range own.addrs {
		if st.titleTo(s, a) != by {
			continue
		}
		f := world.FamilyOf(a)
		if own.has.of(f).IsValid() || !slices.Contains(families(s), f) {
			own.releasesAddr = true
			continue
		}
		if other, why := st.conflictingHolder(a, service); why != "" {
			if by == given || by == shown {
				own.conflicting, own.conflictingHolder, own.conflictingReason = a, other, why
			}
			own.releasesAddr = true
			continue
		}
		st.take(a, service)
		*own.has.of(f) = a
	}
}

// adoptable returns the addresses in the status of a Service that it may keep: those that we allocated, whatever has
// happened to their pool or to the ingress, and those of another controller that a pool could have allocated. It
// returns none if all of them are another controller's, one of them or a host name could not have been allocated, and
// that controller may still be active: two controllers must not overwrite each other's status.
func (st *state) adoptable(s *world.Service, own *ownership) []netip.Addr {
	if s.IsCleared() {
		return s.Given
	}
	var adoptable []netip.Addr
	var refused []string
	ours := s.NamesClass
	for _, a := range s.Assigned {
		if slices.Contains(s.Given, a) {
			ours = true
		} else if why := st.ineligibleReason(s, a); why != "" {
			refused = append(refused, why)
			continue
		}
		adoptable = append(adoptable, a)
	}
	for _, host := range s.AssignedHosts {
		refused = append(refused, fmt.Sprintf("host name %s is in no pool", host))
	}
	if len(refused) == 0 {
		return s.Assigned
	}
	own.refused, own.releasesAddr = strings.Join(refused, "; "), true
	if own.foreign = !ours; own.foreign {
		return nil
	}
	return adoptable
}

// ineligibleReason returns why no pool would allocate an address to a Service, even if the address were free. It
// returns an empty string if a pool could. A host outside of the cluster that answers for the address is ignored: it
// may be the controller that allocated it.
func (st *state) ineligibleReason(s *world.Service, a netip.Addr) string {
	p := st.poolOf(a)
	if p == nil {
		if use := st.usedAs(a, s.Key); use != "" {
			return fmt.Sprintf("address %s is %s", a, use)
		}
		return fmt.Sprintf("address %s is in no pool", a)
	}
	if why := p.admissionError(s); why != "" && st.reservations[a] != s.Key {
		return fmt.Sprintf("address %s: %s", a, why)
	}
	if why := st.unusableExcept(p, a, s.Key, conflictRole); why != "" {
		return "address " + why
	}
	if p.External != nil {
		return fmt.Sprintf("address %s is in external pool %q, whose provider chooses the addresses", a, p.Name)
	}
	return ""
}

// reserveExternals reserves addresses in the conditions ExternalIPs of Services that no longer list them, until they
// are no longer there. Otherwise a Service whose status can't be written could take such an address back from
// the one that has got it meanwhile: the next leader and the nodes know only the statuses.
func (st *state) reserveExternals() {
	for i, s := range st.services {
		for _, a := range st.external[s.Key] {
			st.quotaUsage.markListed(st.poolOf(a), a, s.Key.Namespace)
		}
		var lists func(netip.Addr) bool
		for _, a := range s.HeldExternalIPs {
			st.quotaUsage.markListed(st.poolOf(a), a, s.Key.Namespace)
			if lists == nil {
				lists = world.AddrSet(s.ExternalIPs)
			}
			if !lists(a) && !st.taken(a) {
				st.reserve(a, i)
			}
		}
	}
}

// reserveAll reserves the addresses that a Service does not keep until its status does not and will not show them.
func (st *state) reserveAll(service int, addrs []netip.Addr) {
	for _, a := range addrs {
		if !st.holds(a, service) {
			st.reserve(a, service)
		}
	}
}
