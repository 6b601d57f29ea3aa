// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// VIPs are all addresses that are answered for: those given and those that the Service
// lists itself.
func (o Outcome) VIPs() []netip.Addr {
	vips := o.Addrs
	for _, a := range o.External {
		if !slices.Contains(vips, a) {
			vips = append(slices.Clip(vips), a)
		}
	}
	return vips
}

// externals takes the addresses that Services list themselves (spec.externalIPs), by age,
// for those who may have them: before anything is given, and after those who have an
// address keep it. That an address is listed is the only trace of it, so of two Services
// the older one always has it, and a disabled pool answers for all that it has.
func (d *desk) externals() []external {
	out := make([]external, len(d.services))
	for i, s := range d.services {
		for _, a := range s.ExternalIPs {
			reason, message := d.denyExternal(i, a)
			switch {
			case message != "":
				out[i].say.add(reason, message)
				continue
			case !d.holds(a, i):
				d.take(a, i)
			}
			out[i].addrs = append(out[i].addrs, a)
		}
	}
	return out
}

// external are the addresses listed by a Service that are answered for, and what there is
// to say about the others.
type external struct {
	addrs []netip.Addr
	say   remarks
}

// denyExternal says why an address that a Service lists itself is not answered for, without
// a reason if no pool asks for that; no message if it is.
func (d *desk) denyExternal(service int, a netip.Addr) (Reason, string) {
	const by = "spec.externalIPs"
	s, p := d.services[service], d.of(a)
	switch {
	case p == nil || !p.ExternalIPs:
		return "", fmt.Sprintf("%s: %s is in no pool with spec.externalIPs, so nothing answers for it", by, a)
	case len(p.Problems) > 0:
		reason, message := p.closed()
		return reason, fmt.Sprintf("%s: address %s: %s", by, a, message)
	case d.holds(a, service):
		return "", ""
	}
	reason, message := d.deny(service, p, a, by)
	if reason == ReasonAddressConflict { // it is announced once the stranger is gone, and asked for until then
		reason, message = d.occupied(service, a, fmt.Sprintf("%s: address %s", by, a))
	}
	if reason != "" {
		return reason, message
	}
	if p.Quota > 0 && d.alone(a, s) && d.spent[account{p.Name, s.Key.Namespace}] >= p.Quota {
		return ReasonQuotaExceeded, fmt.Sprintf("%s: address %s: %s", by, a, d.overdrawn(p, s))
	}
	return "", ""
}
