// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// VIPs returns all addresses that are served: the allocated ones and those of spec.externalIPs.
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

// keepExternals takes the addresses of spec.externalIPs for the Services that own them already, as long as these
// still list them.
func (al *allocator) keepExternals() []external {
	out := make([]external, len(al.services))
	for i, s := range al.services {
		if len(s.ExternalIPs) == 0 {
			continue
		}
		out[i].claims = make([]claimed, len(s.ExternalIPs))
		own := map[netip.Addr]bool{}
		for _, a := range al.heldExternals(s) {
			own[a] = true
		}
		for j, a := range s.ExternalIPs {
			if out[i].claims[j].wasHeld = own[a]; own[a] {
				al.claim(i, a, &out[i].claims[j])
			}
		}
	}
	return out
}

// assignExternalIPs takes the remaining addresses of spec.externalIPs for the Services that may have them, oldest
// Service first. It runs before anything new is allocated, and after the Services that have addresses kept them. A
// disabled pool continues to serve all addresses that it has.
func (al *allocator) assignExternalIPs(out []external) {
	for i, s := range al.services {
		for j, a := range s.ExternalIPs {
			if !out[i].claims[j].wasHeld {
				al.claim(i, a, &out[i].claims[j])
			}
		}
		out[i].collect(s)
	}
}

// claim takes an address of spec.externalIPs if the Service may have it.
func (al *allocator) claim(service int, a netip.Addr, c *claimed) {
	c.reason, c.message, c.poolUnavailable = al.denyExternal(service, a)
	if c.message == "" && !al.holds(a, service) {
		al.take(a, service)
	}
}

// external are the addresses of spec.externalIPs that are served (addrs), those that belong to the Service (held),
// and the remarks about the others.
type external struct {
	claims      []claimed
	addrs, held []netip.Addr
	messages    messages
}

// claimed is the result for one address of spec.externalIPs.
type claimed struct {
	// wasHeld is set if the address belonged to the Service before.
	wasHeld bool
	// reason and message are why the address is not served. poolUnavailable is set if it would be served for no
	// Service.
	reason          Reason
	message         string
	poolUnavailable bool
}

func (e *external) collect(s *world.Service) {
	for j, c := range e.claims {
		a := s.ExternalIPs[j]
		if c.message == "" {
			e.addrs = append(e.addrs, a)
		} else {
			e.messages.add(c.reason, c.message)
		}
		if c.message == "" || c.wasHeld && c.poolUnavailable {
			e.held = append(e.held, a)
		}
	}
	e.claims = nil
}

// denyExternal returns why an address of spec.externalIPs is not served. The reason is empty if no pool serves it,
// and the message is empty if the address is served. closed is set if the address would be served for no Service, so
// its holder keeps it.
func (al *allocator) denyExternal(service int, a netip.Addr) (reason Reason, message string, closed bool) {
	const by = "spec.externalIPs"
	s, p := al.services[service], al.poolOf(a)
	switch {
	case p == nil || !p.ExternalIPs:
		return "", fmt.Sprintf("%s: %s is in no pool with spec.externalIPs, so it is not announced", by, a), true
	case len(p.Problems) > 0:
		reason, message := p.unavailableReason()
		return reason, fmt.Sprintf("%s: address %s: %s", by, a, message), true
	case al.holds(a, service):
		return "", "", false
	}
	// If another host answers for it, it is claimed now and announced once that host is gone.
	if reason, message = al.deny(service, p, a, by, false); reason != "" {
		of, reserved := al.reservations[a]
		return reason, message, reason == ReasonAddressExcluded && (!reserved || of == s.Key)
	}
	if p.Quota > 0 && al.isSoleInNamespace(a, s) && al.quotaUsed[quotaKey{p.Name, s.Key.Namespace}] >= p.Quota {
		return ReasonQuotaExceeded, fmt.Sprintf("%s: address %s: %s", by, a, al.quotaMessage(p, s)), false
	}
	return "", "", false
}
