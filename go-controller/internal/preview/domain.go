// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// DomainChange is what an edit means for the clients of all addresses of an L2Domain.
type DomainChange struct {
	Domain   string   `json:"domain"`
	Effect   Effect   `json:"effect"`
	Messages []string `json:"messages"`
}

// attachment is what connects an address to the clients of an L2Domain: the segment and the next hop, the zero Addr for
// none.
type attachment struct {
	domain, network string
	vlan            int
	hop             netip.Addr
}

// attachment returns the attachment of an address that an L2Domain announces.
func (d *decision) attachment(domain string, a netip.Addr) attachment {
	at := slices.IndexFunc(d.Layout.Domains, func(l *place.Domain) bool { return l.Spec.Name == domain })
	if at < 0 {
		return attachment{}
	}
	spec := d.Layout.Domains[at].Spec
	out := attachment{domain: domain, network: spec.PhysicalNetwork, vlan: spec.VLAN}
	for _, s := range spec.Subnets {
		if s.Prefix.Contains(a) {
			out.hop = s.Gateway
		}
	}
	return out
}

// segment describes the segment.
func (a attachment) segment() string {
	if a.vlan == 0 {
		return "physical network " + a.network + ", untagged"
	}
	return fmt.Sprintf("physical network %s, VLAN %d", a.network, a.vlan)
}

// attachmentChange is a change of the attachments of addresses.
type attachmentChange struct{ from, to attachment }

// newAttachmentChange returns the change between two attachments. On another segment, next hops do not matter.
func newAttachmentChange(from, to attachment) attachmentChange {
	if from.network != to.network || from.vlan != to.vlan {
		from.hop, to.hop = netip.Addr{}, netip.Addr{}
	}
	return attachmentChange{from, to}
}

// effect returns what the change means for the clients of the addresses.
func (c attachmentChange) effect(addresses int) (Effect, string) {
	count := world.Count(addresses, "address")
	switch {
	case c.from.network != c.to.network || c.from.vlan != c.to.vlan:
		to := c.to.segment()
		if c.to.domain != c.from.domain {
			to = "L2Domain " + c.to.domain + ", " + to
		}
		return Loses, fmt.Sprintf("its addresses move to %s: clients on the present segment (%s) no longer reach %s, "+
			"unless both are the same segment", to, c.from.segment(), count)
	case c.from.hop == c.to.hop:
		return Alters, ""
	case !c.to.hop.IsValid():
		return Loses, fmt.Sprintf("without next hop %s, clients outside the segment no longer reach %s", c.from.hop, count)
	case !c.from.hop.IsValid():
		return Gains, fmt.Sprintf("with next hop %s, clients outside the segment reach %s", c.to.hop, count)
	}
	return Loses, fmt.Sprintf("clients outside the segment no longer reach %s, unless next hop %s is a router of the "+
		"segment", count, c.to.hop)
}

// compareDomains returns what changes in the attachments of the addresses of L2Domains.
func compareDomains(moved map[attachmentChange]int) []DomainChange {
	changes := map[string]*DomainChange{}
	for change, addresses := range moved {
		effect, message := change.effect(addresses)
		if message == "" {
			continue
		}
		c := changes[change.from.domain]
		if c == nil {
			c = &DomainChange{Domain: change.from.domain, Effect: Alters}
			changes[change.from.domain] = c
		}
		c.Messages = append(c.Messages, message)
		if effect == Loses || c.Effect == Alters {
			c.Effect = effect
		}
	}
	var list []DomainChange
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		slices.Sort(changes[name].Messages)
		list = append(list, *changes[name])
	}
	return list
}

// possibleMistakes returns notes about what may be a mistake in domains since the edit: subnets that do not look like
// those of their segment, and preferences without effect.
func possibleMistakes(was, is *decision) []string {
	notes := func(d *decision) []string {
		var list []string
		for _, domain := range d.Layout.Domains {
			for _, text := range slices.Concat(place.ForeignSubnets(domain.Spec, d.World), domain.Unmatched) {
				list = append(list, "L2Domain "+domain.Spec.Name+": "+text)
			}
		}
		return list
	}
	old := notes(was)
	return slices.DeleteFunc(notes(is), func(n string) bool { return slices.Contains(old, n) })
}

// text returns the change in one line.
func (c *DomainChange) text() string {
	return fmt.Sprintf("%-7s L2Domain %s: %s", c.Effect, c.Domain, strings.Join(c.Messages, "; "))
}
