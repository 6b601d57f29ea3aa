// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// VIPs are all addresses that are answered for: those given and those that the Service
// lists itself.
func (o Outcome) VIPs() []netip.Addr {
	if len(o.External) == 0 {
		return o.Addrs
	}
	vips := slices.Clone(o.Addrs)
	for _, a := range o.External {
		if !slices.Contains(o.Addrs, a) {
			vips = append(vips, a)
		}
	}
	return vips
}

// keepExternals takes the addresses that Services list themselves (spec.externalIPs) for those whose
// they are already, as long as these list them.
func (d *desk) keepExternals() []external {
	out := make([]external, len(d.services))
	for i, s := range d.services {
		if len(s.ExternalIPs) == 0 {
			continue
		}
		out[i].claims = make([]claimed, len(s.ExternalIPs))
		own := map[netip.Addr]bool{}
		for _, a := range d.heldExternals(s) {
			own[a] = true
		}
		for j, a := range s.ExternalIPs {
			if out[i].claims[j].already = own[a]; own[a] {
				d.claim(i, a, &out[i].claims[j])
			}
		}
	}
	return out
}

// claimExternals takes the others for those who may have them, the older of two Services first: before
// anything is given, and after those who have an address keep it. A disabled pool answers for all
// that it has.
func (d *desk) claimExternals(out []external) {
	for i, s := range d.services {
		for j, a := range s.ExternalIPs {
			if !out[i].claims[j].already {
				d.claim(i, a, &out[i].claims[j])
			}
		}
		out[i].settle(s)
	}
}

// claim takes an address that a Service lists itself, if it may have it.
func (d *desk) claim(service int, a netip.Addr, c *claimed) {
	c.reason, c.message, c.closed = d.denyExternal(service, a)
	if c.message == "" && !d.holds(a, service) {
		d.take(a, service)
	}
}

// external are the addresses listed by a Service that are answered for, those that are its own,
// and what there is to say about the others.
type external struct {
	claims      []claimed
	addrs, held []netip.Addr
	say         remarks
}

// claimed is what became of an address that a Service lists itself.
type claimed struct {
	// already: it was the Service's own before.
	already bool
	// reason and message say why it is not answered for, closed that it would be for no Service.
	reason  Reason
	message string
	closed  bool
}

func (e *external) settle(s *world.Service) {
	for j, c := range e.claims {
		a := s.ExternalIPs[j]
		if c.message == "" {
			e.addrs = append(e.addrs, a)
		} else {
			e.say.add(c.reason, c.message)
		}
		if c.message == "" || c.already && c.closed {
			e.held = append(e.held, a)
		}
	}
	e.claims = nil
}

// denyExternal says why an address that a Service lists itself is not answered for, without
// a reason if no pool asks for that; no message if it is. closed: it would be for no Service, so its
// holder keeps it.
func (d *desk) denyExternal(service int, a netip.Addr) (reason Reason, message string, closed bool) {
	const by = "spec.externalIPs"
	s, p := d.services[service], d.of(a)
	switch {
	case p == nil || !p.ExternalIPs:
		return "", fmt.Sprintf("%s: %s is in no pool with spec.externalIPs, so nothing answers for it", by, a), true
	case len(p.Problems) > 0:
		reason, message := p.closed()
		return reason, fmt.Sprintf("%s: address %s: %s", by, a, message), true
	case d.holds(a, service):
		return "", "", false
	}
	// If a stranger answers for it, it is announced once that one is gone, and asked for until then.
	if reason, message = d.deny(service, p, a, by, false); reason != "" {
		of, reserved := d.kept[a]
		return reason, message, reason == ReasonAddressExcluded && (!reserved || of == s.Key)
	}
	if p.Quota > 0 && d.alone(a, s) && d.spent[account{p.Name, s.Key.Namespace}] >= p.Quota {
		return ReasonQuotaExceeded, fmt.Sprintf("%s: address %s: %s", by, a, d.overdrawn(p, s)), false
	}
	return "", "", false
}
