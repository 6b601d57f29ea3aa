// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// subnet returns the subnet of the domain that contains the address.
func (d *Domain) subnet(a netip.Addr) (world.Subnet, bool) {
	for _, s := range d.Spec.Subnets {
		if s.Prefix.Contains(a) {
			return s, true
		}
	}
	return world.Subnet{}, false
}

// subnets returns the text of all subnets of the domain.
func (d *Domain) subnets() string {
	texts := make([]string, len(d.Spec.Subnets))
	for i, s := range d.Spec.Subnets {
		texts[i] = s.Prefix.String()
	}
	return strings.Join(texts, ", ")
}

// maxRanges is how many ranges of a pool a message names.
const maxRanges = 3

// OutsideSubnets names the ranges of a pool of which no address is in a subnet of its L2Domain, as after a typing error
// in one of the two objects, and reports whether these are all ranges of the pool. It returns no text if there is no
// such range, or if no L2Domain has the pool.
func (l *Layout) OutsideSubnets(p *world.Pool) (text string, all bool) {
	d := l.byPool[p.Name]
	if d == nil || len(p.Problems) > 0 || len(d.Spec.Problems) > 0 {
		return "", false
	}
	var outside []string
	for _, r := range p.Ranges {
		overlaps := func(s world.Subnet) bool { return netipx.RangeOfPrefix(s.Prefix).Overlaps(r) }
		if !slices.ContainsFunc(d.Spec.Subnets, overlaps) {
			outside = append(outside, ipam.RangeText(r))
		}
	}
	if len(outside) == 0 {
		return "", false
	}
	return fmt.Sprintf("spec.addresses: no address of %s is in a subnet of L2Domain %q: %s",
			world.Some(outside, maxRanges), d.Spec.Name, d.subnets()),
		len(outside) == len(p.Ranges)
}
