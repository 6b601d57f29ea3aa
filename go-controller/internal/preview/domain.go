// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// DomainChange is what changes in the spec of an L2Domain, and for all of its addresses at once.
type DomainChange struct {
	Domain string                 `json:"domain"`
	Effect Effect                 `json:"effect"`
	Fields []manifest.FieldChange `json:"fields,omitempty"`
	// Messages are what follows for the clients of the addresses.
	Messages []string `json:"messages,omitempty"`
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

// movement is a change of the attachments of addresses.
type movement struct{ from, to attachment }

// consequence returns what a movement of addresses means for their clients. known means that the agents of all nodes
// report their bridges.
func (m movement) consequence(addresses int, known bool) (Effect, string) {
	count := world.Count(addresses, "address")
	switch {
	case m.from.network != m.to.network || m.from.vlan != m.to.vlan:
		to, mapping := m.to.segment(), ""
		if m.to.domain != m.from.domain {
			to = "L2Domain " + m.to.domain + ", " + to
		}
		if m.from.network != m.to.network && !known {
			mapping = "; which nodes have " + m.to.network + " in ovn-bridge-mappings is not known before the edit"
		}
		return Loses, fmt.Sprintf("its addresses move to %s: clients on the present segment (%s) no longer reach %s, "+
			"unless both are the same segment%s", to, m.from.segment(), count, mapping)
	case m.from.hop == m.to.hop:
		return Alters, ""
	case !m.to.hop.IsValid():
		return Loses, fmt.Sprintf("without next hop %s, clients outside the segment no longer reach %s", m.from.hop, count)
	case !m.from.hop.IsValid():
		return Gains, fmt.Sprintf("with next hop %s, clients outside the segment reach %s", m.to.hop, count)
	}
	return Loses, fmt.Sprintf("clients outside the segment no longer reach %s, unless next hop %s is a router of the "+
		"segment", count, m.to.hop)
}

// compareDomains returns what changes in L2Domains of both versions of a cluster, and in the attachments of their
// addresses.
func compareDomains(before, after *objects.Objects, is *decision, moved map[movement]int) []DomainChange {
	changes := map[string]*DomainChange{}
	of := func(domain string) *DomainChange {
		if changes[domain] == nil {
			changes[domain] = &DomainChange{Domain: domain, Effect: Alters}
		}
		return changes[domain]
	}
	for _, d := range after.Domains {
		if old := objects.Named(before.Domains, d.Name); old != nil {
			if fields := manifest.Changed(specFields(&old.Spec), specFields(&d.Spec)); len(fields) > 0 {
				of(d.Name).Fields = fields
			}
		}
	}
	known := !slices.ContainsFunc(is.World.Nodes, func(n *world.Node) bool {
		return n.Chassis != "" && (n.Agent == nil || n.Agent.Bridges == nil)
	})
	for m, addresses := range moved {
		effect, message := m.consequence(addresses, known)
		if message == "" {
			continue
		}
		c := of(m.from.domain)
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

// specFields returns the values of a spec by the paths of its fields, without those that are unset.
func specFields(spec *v1alpha1.L2DomainSpec) map[string]string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil // not reached: the type has a JSON form
	}
	delete(content, "subnets")
	out := manifest.Fields(content)
	for _, s := range spec.Subnets {
		out["subnets["+s.CIDR+"]"] = "gateway " + cmp.Or(string(s.Gateway), "none")
	}
	return out
}

// text returns the change in one line.
func (c *DomainChange) text() string {
	var fields []string
	for _, f := range c.Fields {
		fields = append(fields, f.String())
	}
	return fmt.Sprintf("%-7s L2Domain %s: %s", c.Effect, c.Domain, strings.Join(append(fields, c.Messages...), "; "))
}
