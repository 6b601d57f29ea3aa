// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// adopt lets a Service keep what it has, unless an older one has it too and does not share
// it. Of what another controller wrote into its status it has what a pool could have given it.
func (l *ledger) adopt(service int) assets {
	s := l.services[service]
	addrs := l.held[s.Key]
	own := assets{leaves: len(addrs) > 0}
	if len(addrs) == 0 {
		addrs = l.adoptable(s, &own)
	}
	for _, a := range addrs {
		f := world.FamilyOf(a)
		if own.has.of(f).IsValid() || !slices.Contains(families(s), f) {
			own.leaves = true
			continue
		}
		if other, why := l.obstacle(a, service); why != "" {
			own.lost, own.to, own.why = a, other, why
			own.leaves = true
			continue
		}
		l.take(a, service)
		*own.has.of(f) = a
	}
	return own
}

// adoptable are the addresses in the status of a Service that are its own: those that we gave,
// whatever has become of their pool, and those of another controller that a pool could have given.
// If all are another controller's, one of them could not have been given, and that controller may
// still be in charge, none is: we don't fight over a status.
func (l *ledger) adoptable(s *world.Service, own *assets) []netip.Addr {
	var adoptable []netip.Addr
	var refused []string
	given := false
	for _, a := range s.Assigned {
		if slices.Contains(s.Given, a) {
			given = true
		} else if why := l.neverGiven(s, a); why != "" {
			refused = append(refused, why)
			continue
		}
		adoptable = append(adoptable, a)
	}
	if len(refused) == 0 {
		return s.Assigned
	}
	own.refused, own.leaves = strings.Join(refused, "; "), true
	if own.foreign = !given && !s.NamesClass; own.foreign {
		return nil
	}
	return adoptable
}

// neverGiven says why no pool would give an address to a Service whatever else is in use;
// empty if one could, were it free. A host outside of the cluster that answers for the address does not
// count: that may be the controller that gave it.
func (l *ledger) neverGiven(s *world.Service, a netip.Addr) string {
	p := l.of(a)
	if p == nil {
		if use := l.usedAs(a); use != "" {
			return fmt.Sprintf("address %s is %s", a, use)
		}
		return fmt.Sprintf("address %s is in no pool", a)
	}
	if why := p.shuts(s); why != "" && l.kept[a] != s.Key {
		return fmt.Sprintf("address %s: %s", a, why)
	}
	if why := l.unusableBut(p, a, s.Key, contestedBy); why != "" {
		return "address " + why
	}
	return ""
}

// reserveStatus keeps the addresses that a Service is about to leave from others until
// they are out of its status.
func (l *ledger) reserveStatus(service int) {
	for _, a := range l.services[service].Assigned {
		if !l.holds(a, service) {
			l.take(a, service)
		}
	}
}
