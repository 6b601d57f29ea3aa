// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// own are the addresses that a Service had. Of what another controller wrote into its status it has what a pool could have
// given it.
func (l *ledger) own(service int) assets {
	s := l.services[service]
	own := assets{addrs: l.held[s.Key]}
	if own.leaves = len(own.addrs) > 0; !own.leaves {
		own.addrs = l.adoptable(s, &own)
	}
	return own
}

// adopt lets a Service keep those of its addresses that its status shows, or those that it does not, unless a Service before
// it has them too and does not share them. Those in a status come before all that are only granted: where two controllers run at
// once, the other one may have written them.
func (l *ledger) adopt(service int, own *assets, shown bool) {
	s := l.services[service]
	for _, a := range own.addrs {
		if slices.Contains(s.Assigned, a) != shown {
			continue
		}
		f := world.FamilyOf(a)
		if own.has.of(f).IsValid() || !slices.Contains(families(s), f) {
			own.leaves = true
			continue
		}
		if other, why := l.obstacle(a, service); why != "" {
			if shown {
				own.lost, own.to, own.why = a, other, why
			}
			own.leaves = true
			continue
		}
		l.take(a, service)
		*own.has.of(f) = a
	}
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
