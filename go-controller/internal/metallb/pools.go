// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Limits of the CRD of IPAddressPool.
const (
	maxAddresses = 32
	maxPriority  = 1000000
)

// convertPools converts IPAddressPools. A pool is not part of the result until the domains are converted.
func (c *conversion) convertPools() {
	for _, p := range c.source.pools {
		ref := p.String()
		out := &v1alpha1.IPAddressPool{TypeMeta: typeMeta(kindPool), ObjectMeta: meta(p, c.selectable)}
		addresses, ok := c.addresses(p)
		out.Spec.Addresses = addresses
		out.Spec.AutoAssign = p.spec.AutoAssign
		out.Spec.AvoidBuggyIPs = p.spec.AvoidBuggyIPs
		ok = c.allocation(p, out) && ok
		if c.accept(ref, out) && ok && !p.incomplete {
			c.pools = append(c.pools, out)
		}
	}
}

// addresses returns the addresses of a pool. It returns false if there is an error.
func (c *conversion) addresses(p *pool) ([]v1alpha1.AddressRange, bool) {
	var out []v1alpha1.AddressRange
	valid := true
	for i, entry := range p.spec.Addresses {
		field := fmt.Sprintf("spec.addresses[%d]", i)
		a, note := addressRange(entry)
		if note != "" {
			c.add(Note, p.String(), field, "%s %s", entry, note)
		}
		if _, err := a.Parse(); err != nil {
			c.add(Error, p.String(), field, "%v", err)
			valid = false
			continue
		}
		if slices.Contains(out, a) {
			c.add(Note, p.String(), field, "%s is there twice", entry)
			continue
		}
		out = append(out, a)
	}
	if !valid || len(out) <= maxAddresses {
		return out, valid
	}
	joined := mergeRanges(out)
	if len(joined) > maxAddresses {
		c.add(Error, p.String(), "spec.addresses", "%d ranges that do not adjoin; a pool has at most %d. Divide it into "+
			"several pools", len(joined), maxAddresses)
		return nil, false
	}
	c.add(Note, p.String(), "spec.addresses", "the %d entries are joined to %d ranges; a pool has at most %d entries",
		len(out), len(joined), maxAddresses)
	return joined, true
}

// addressRange returns an entry of MetalLB's addresses in our format, and what differs.
func addressRange(entry string) (a v1alpha1.AddressRange, note string) {
	from, to, isRange := strings.Cut(entry, "-")
	if isRange {
		return v1alpha1.AddressRange(strings.TrimSpace(from) + "-" + strings.TrimSpace(to)), ""
	}
	prefix, err := netip.ParsePrefix(entry)
	if err != nil || prefix == prefix.Masked() {
		return v1alpha1.AddressRange(entry), ""
	}
	return v1alpha1.AddressRange(prefix.Masked().String()), fmt.Sprintf("has host bits set. To MetalLB it is the whole "+
		"network, and it is written as %s", prefix.Masked())
}

// mergeRanges returns the same addresses in as few ranges as possible. All entries are valid.
func mergeRanges(entries []v1alpha1.AddressRange) []v1alpha1.AddressRange {
	var out []v1alpha1.AddressRange
	for _, r := range union(entries).Ranges() {
		if r.From() == r.To() {
			out = append(out, v1alpha1.AddressRange(r.From().String()))
			continue
		}
		out = append(out, v1alpha1.AddressRange(r.From().String()+"-"+r.To().String()))
	}
	return out
}

// union returns the addresses of valid entries.
func union(entries []v1alpha1.AddressRange) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, e := range entries {
		if r, err := e.Parse(); err == nil {
			b.AddRange(r)
		}
	}
	set, err := b.IPSet()
	if err != nil {
		return &netipx.IPSet{} // not reached: the entries are valid
	}
	return set
}

// allocation converts spec.serviceAllocation. It returns false if there is an error.
func (c *conversion) allocation(p *pool, out *v1alpha1.IPAddressPool) bool {
	in := p.spec.ServiceAllocation
	if in == nil {
		return true
	}
	ref, field := p.String(), "spec.serviceAllocation"
	if in.Priority < 0 || in.Priority > maxPriority {
		c.add(Error, ref, field+".priority", "%d is not between 0 and %d", in.Priority, maxPriority)
		return false
	}
	if !c.validSelectors(ref, field+".namespaceSelectors", in.NamespaceSelectors) ||
		!c.validSelectors(ref, field+".serviceSelectors", in.ServiceSelectors) {
		return false
	}
	slices.Sort(in.Namespaces)
	out.Spec.ServiceAllocation = &v1alpha1.ServiceAllocation{Priority: int32(in.Priority),
		Namespaces: slices.Compact(in.Namespaces), NamespaceSelectors: in.NamespaceSelectors,
		ServiceSelectors: in.ServiceSelectors}
	if len(in.Namespaces)+len(in.NamespaceSelectors)+len(in.ServiceSelectors) > 0 {
		if in.Priority == 0 {
			return true
		}
		for _, other := range c.source.pools {
			if o := other.spec.ServiceAllocation; other.name < p.name && o != nil && o.Priority == in.Priority {
				c.add(Note, ref, field+".priority", "%d is also that of pool %s. MetalLB chooses one at random; here the one "+
					"whose name comes first in the alphabet is first", in.Priority, other.name)
				break
			}
		}
		return true
	}
	if auto := p.spec.AutoAssign; auto == nil || *auto {
		never := false
		out.Spec.AutoAssign = &never
		c.add(Warning, ref, field, "has neither namespaces, namespaceSelectors nor serviceSelectors. MetalLB gives the "+
			"addresses of such a pool on request only, therefore autoAssign is set to false")
	}
	return true
}
