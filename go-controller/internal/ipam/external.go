// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
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
func (al *allocator) keepExternals(owns []ownership) []external {
	al.countListing()
	out := make([]external, len(al.services))
	for i, s := range al.services {
		if len(s.ExternalIPs) == 0 {
			continue
		}
		out[i].claims = make([]claimed, len(s.ExternalIPs))
		own, remarks := al.heldExternals(i), 0
		for j, a := range s.ExternalIPs {
			c := &out[i].claims[j]
			c.allocated = *owns[i].has.of(world.FamilyOf(a)) == a
			if !own[a] {
				continue
			}
			if al.keepExternal(i, a, c, remarks < maxRemarks); c.message != "" {
				remarks++
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
		refused := 0
		for j, a := range s.ExternalIPs {
			c := &out[i].claims[j]
			if c.held || refused >= maxRemarks && !al.mayGetExternal(i, a) {
				continue
			}
			if al.claim(i, a, c); !c.held {
				refused++
			}
		}
		out[i].collect(s)
	}
}

const (
	// maxRemarks is the number of refused addresses of a Service after which those that it can't have are not explained
	// any more, and that of held addresses with a remark after which a pool that does not admit the Service is no longer
	// named. Tenants list them without limit, and a message takes longer than all else.
	maxRemarks = 100
	// maxExternals is the maximum number of addresses of spec.externalIPs that Services of a namespace get, counted for
	// each Service. With BGP, each is a route of each node to each router.
	maxExternals = 10_000
)

// mayGetExternal reports whether a Service may get an address of spec.externalIPs that it did not have, as far as that
// is known without a comparison: a pool serves the address, and no Service has it that shares nothing with it.
func (al *allocator) mayGetExternal(service int, a netip.Addr) bool {
	p, s := al.poolOf(a), al.services[service]
	holder, taken := al.holder[a]
	return p != nil && p.ExternalIPs && al.externals[s.Key.Namespace] < maxExternals &&
		(!taken || holder == service ||
			sameKey(al.services[holder], s) && al.refusedPorts[service] <= al.mostRefused(service))
}

// keepExternal lets a Service keep an address of spec.externalIPs, unless the pool reserves the address for another
// Service or another holder does not share it. Quota and admission rules of the pool decide about new addresses only,
// as with allocated addresses. An address that is served for no Service at the moment is taken as well, so that it is
// not allocated to another one meanwhile. Without explain, there is no remark about admission.
func (al *allocator) keepExternal(service int, a netip.Addr, c *claimed, explain bool) {
	s, p := al.services[service], al.poolOf(a)
	reservedFor, reserved := al.reservations[a]
	if !c.allocated {
		ports, why := al.portsToShare(a, service)
		if why != "" {
			return
		}
		if _, why = al.conflictingHolder(a, service); why != "" || reserved && reservedFor != s.Key {
			al.refusedPorts[service] += ports
			return
		}
		al.sharedPorts[s.Key.Namespace] += ports
	}
	al.hold(service, a, c)
	if c.reason, c.message = externalsUnavailable(p, a); c.message != "" {
		return
	}
	c.served = true
	if c.allocated {
		return
	}
	// If another host answers for it, it is announced once that host is gone. What a node reports of itself does not end
	// it: a kubelet could stop any address that way. Nor does an EgressIP, as it ends no other address of a Service.
	if why := al.unusableExcept(p, a, s.Key, conflictRole, nodeRole, hopRole, egressRole); why != "" {
		c.served, c.reason, c.message = false, ReasonAddressExcluded, externalIPsField+": address "+why
	} else if why := al.contested(a); why != "" {
		c.reason, c.message = ReasonAddressConflict, fmt.Sprintf("%s: address %s is %s; the Service keeps it as long as it "+
			"lists it", externalIPsField, a, why)
	} else if why := al.unusableExcept(p, a, s.Key, conflictRole); why != "" {
		c.reason, c.message = ReasonAddressRetained, fmt.Sprintf("%s: address %s; the Service keeps it as long as it "+
			"lists it", externalIPsField, why)
	} else if explain && !reserved && !p.admits(s) {
		c.reason, c.message = ReasonAddressRetained, fmt.Sprintf("%s: address %s: %s; the Service keeps it as long as it "+
			"lists it", externalIPsField, a, p.admissionError(s))
	}
}

// claim takes an address of spec.externalIPs that the Service did not have, if it may have it.
func (al *allocator) claim(service int, a netip.Addr, c *claimed) {
	if c.reason, c.message = al.denyExternal(service, a, c.allocated); c.message != "" {
		return
	}
	al.hold(service, a, c)
	c.served = true
}

// hold gives an address of spec.externalIPs to a Service that may have it.
func (al *allocator) hold(service int, a netip.Addr, c *claimed) {
	al.keep(a, service)
	al.quotaUsage.markListed(al.poolOf(a), a, al.services[service].Key.Namespace)
	c.held = true
	al.externals[al.services[service].Key.Namespace]++
}

// maxSharedExternals is the maximum number of ports, of the Services of a namespace, that are indexed for addresses of
// spec.externalIPs that other Services have, counted for each address. A Service may list thousands of both.
//
// Comparisons after which a Service does not get the address are limited separately, to the same number in equal parts
// for the Services of the namespace: a Service that is refused many addresses takes nothing from a younger one. Each
// Service is compared at least once.
const maxSharedExternals = 100_000

// countListing counts the Services that want to share addresses of spec.externalIPs.
func (al *allocator) countListing() {
	for _, s := range al.services {
		if len(s.ExternalIPs) > 0 && s.SharingKey != "" {
			al.listing[s.Key.Namespace]++
		}
	}
}

// portsToShare returns the number of ports to compare, and to index if the Service gets the address, before a Service
// may share an address of spec.externalIPs with its holders. It is 0 if they do not want to share it. why is set if it
// exceeds a limit. Services keep what they have before others are compared.
func (al *allocator) portsToShare(a netip.Addr, service int) (ports int, why string) {
	first, taken := al.holder[a]
	s := al.services[service]
	if !taken || first == service || !sameKey(al.services[first], s) {
		return 0, ""
	}
	ports = len(s.Ports)
	if sh := al.sharers[a]; sh == nil || sh.ports == nil {
		ports += len(al.services[first].Ports)
	}
	namespace := s.Key.Namespace
	if al.sharedPorts[namespace]+ports > maxSharedExternals {
		return 0, fmt.Sprintf("in namespace %q, ports x addresses of Services that share external IPs exceed the limit of %d",
			namespace, maxSharedExternals)
	}
	if most := al.mostRefused(service); al.refusedPorts[service] > most {
		return 0, fmt.Sprintf("ports x addresses that the Service can't share with others exceed the limit of %d for each "+
			"of %s of namespace %q, so no further ones are compared", most,
			world.Count(al.listing[namespace], "Service"), namespace)
	}
	return ports, ""
}

// mostRefused returns the maximum number of refusedPorts of a Service that wants to share addresses.
func (al *allocator) mostRefused(service int) int {
	return maxSharedExternals / al.listing[al.services[service].Key.Namespace]
}

// external are the addresses of spec.externalIPs that are served (addrs), those that belong to the Service (held),
// and the remarks about them.
type external struct {
	claims      []claimed
	addrs, held []netip.Addr
	messages    messages
}

// claimed is the result for one address of spec.externalIPs.
type claimed struct {
	// allocated is set if the Service has the address apart from spec.externalIPs as well. held is set if the address
	// belongs to the Service, served if it is served as well.
	allocated, held, served bool
	// reason and message are why the address is not served, or why it would not be if it were new.
	reason  Reason
	message string
}

func (e *external) collect(s *world.Service) {
	for j, c := range e.claims {
		a := s.ExternalIPs[j]
		if c.served {
			e.addrs = append(e.addrs, a)
		}
		if c.held {
			e.held = append(e.held, a)
		}
		// An address that the Service has apart from spec.externalIPs is announced all the same. Of one that it requests,
		// the request says why it does not have it.
		if !c.allocated && (c.held || !slices.Contains(s.Requested, a)) {
			e.messages.add(c.reason, c.message)
		} else {
			e.messages.waits = e.messages.waits || c.reason.mayEnd()
		}
	}
	e.claims = nil
}

// externalIPsField is how messages name the field that lists an address.
const externalIPsField = "spec.externalIPs"

// externalsUnavailable returns why an address of spec.externalIPs is served for no Service, whatever Service lists it.
// p is its pool, or nil. The message is empty if p serves external IPs, and the reason is empty if there is no pool.
func externalsUnavailable(p *pool, a netip.Addr) (Reason, string) {
	switch {
	case p == nil || !p.ExternalIPs:
		const format = "%s: %s is in no pool with externalIPs: true, so it is not announced"
		if p == nil { // It may be served by other means, which are none of our business.
			return "", fmt.Sprintf(format, externalIPsField, a)
		}
		return ReasonNotAdmitted, fmt.Sprintf(format+": set that in pool %q, or request the address by annotation %s instead",
			externalIPsField, a, p.Name, v1alpha1.AnnotationLoadBalancerIPs)
	case len(p.Problems) > 0:
		reason, message := p.unavailableReason()
		return reason, fmt.Sprintf("%s: address %s: %s", externalIPsField, a, message)
	}
	return "", ""
}

// denyExternal returns why a Service does not get an address of spec.externalIPs that it did not have. The message is
// empty if it gets the address.
func (al *allocator) denyExternal(service int, a netip.Addr, allocated bool) (Reason, string) {
	s, p := al.services[service], al.poolOf(a)
	if reason, message := externalsUnavailable(p, a); message != "" {
		return reason, message
	}
	if allocated {
		return "", ""
	}
	if n := al.externals[s.Key.Namespace]; n >= maxExternals {
		return ReasonQuotaExceeded, fmt.Sprintf("%s: address %s: Services of namespace %q have %d addresses of "+
			"spec.externalIPs, which is the limit", externalIPsField, a, s.Key.Namespace, n)
	}
	ports, why := al.portsToShare(a, service)
	if why != "" {
		return ReasonAddressInUse, fmt.Sprintf("%s: address %s: %s", externalIPsField, a, why)
	}
	// If another host answers for it, it is claimed now and announced once that host is gone.
	reason, message := al.denialReason(service, p, a, externalIPsField, false)
	if reason == "" && p.Quota > 0 && al.quotaUsage.usage(p, s.Key.Namespace) >= p.Quota &&
		!al.quotaUsage.staysIn(a, s.Key.Namespace) {
		reason = ReasonQuotaExceeded
		message = fmt.Sprintf("%s: address %s: %s", externalIPsField, a, al.quotaMessage(p, s))
	}
	if reason != "" {
		al.refusedPorts[service] += ports
	} else {
		al.sharedPorts[s.Key.Namespace] += ports
	}
	return reason, message
}
