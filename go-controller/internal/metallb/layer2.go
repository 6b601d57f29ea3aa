// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// bridgeCommands show the interface of a physical network on a node.
const bridgeCommands = "ovs-vsctl get Open_vSwitch . external_ids:ovn-bridge-mappings, and ovs-vsctl list-ports BRIDGE"

// convertDomains makes an L2Domain of each segment. It announces the pools that L2Advertisements select and that have
// addresses in the subnets of the segment.
func (c *conversion) convertDomains() {
	for _, a := range c.source.l2Advertisements {
		c.checkL2Advertisement(a)
	}
	if len(c.source.l2Advertisements) > 0 && len(c.input.Segments) == 0 {
		for _, a := range c.source.l2Advertisements {
			if c.isServed(a) {
				c.add(Note, a.String(), "", "L2Domains of the cluster announce its pools")
				continue
			}
			c.add(Error, a.String(), "", "physicalNetwork and subnets of an L2Domain can't be derived from MetalLB's objects: "+
				"give the segment by --segment NETWORK[/VLAN]=CIDR[@GATEWAY],...%s", c.segmentSuggestion(a))
		}
	}
	// One that lacks a field could announce more than MetalLB does.
	c.source.l2Advertisements = slices.DeleteFunc(c.source.l2Advertisements,
		func(a *l2Advertisement) bool { return a.incomplete })
	if len(c.input.Segments) > 0 && slices.ContainsFunc(c.source.l2Advertisements,
		func(a *l2Advertisement) bool { return len(a.spec.Interfaces) == 0 }) {
		c.add(Note, kindL2Advertisement, "spec.interfaces", "if unset, MetalLB announces on all interfaces of a node. An "+
			"L2Domain announces on the bridge of its physicalNetwork only")
	}
	names := map[string]bool{}
	for _, s := range c.input.Segments {
		d := s.domain()
		if names[d.Name] {
			c.add(Error, "", "", "segment %s is given twice: give all its subnets at once", d.Name)
			continue
		}
		names[d.Name] = true
		if c.fillDomain(d) && c.accept("segment "+d.Name, d) {
			c.domains = append(c.domains, d)
			c.objects = append(c.objects, d)
		}
	}
	for _, p := range c.pools {
		c.checkPool(p)
	}
}

// segmentSuggestion names the networks of the nodes that contain addresses of an advertisement.
func (c *conversion) segmentSuggestion(a *l2Advertisement) string {
	var in []string
	for _, n := range c.input.NodeNetworks {
		if slices.ContainsFunc(c.pools, func(p *v1alpha1.IPAddressPool) bool {
			return selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p) && overlaps(p, []netip.Prefix{n})
		}) && !slices.Contains(in, n.String()) {
			in = append(in, n.String())
		}
	}
	if len(in) == 0 {
		return ""
	}
	return ". The addresses are in this network of the nodes: " + strings.Join(in, ",")
}

// checkL2Advertisement names what an L2Domain does not have.
func (c *conversion) checkL2Advertisement(a *l2Advertisement) {
	in := &a.spec
	if len(in.Interfaces) > 0 {
		c.add(Warning, a.String(), "spec.interfaces", "%s: physicalNetwork determines the interface. Compare on each "+
			"node: %s", strings.Join(in.Interfaces, ", "), bridgeCommands)
	}
	pools, selective := c.references(a.String(), "spec.ipAddressPools", kindPool, in.IPAddressPools)
	c.layer2Pools[a.name] = pools
	if !selective && len(in.IPAddressPoolSelectors) == 0 {
		c.add(Error, a.String(), "spec.ipAddressPools", "none is converted")
	}
	c.validSelectors(a.String(), "spec.nodeSelectors", in.NodeSelectors)
	c.validSelectors(a.String(), "spec.serviceSelectors", in.ServiceSelectors)
	c.validSelectors(a.String(), "spec.ipAddressPoolSelectors", in.IPAddressPoolSelectors)
}

// fillDomain sets the pools and nodes of a domain. It returns false if the domain has no pool.
func (c *conversion) fillDomain(d *v1alpha1.L2Domain) bool {
	subnets := prefixes(d.Spec.Subnets)
	var members []*l2Advertisement
	var pools []string
	for _, a := range c.source.l2Advertisements {
		member := false
		for _, p := range c.pools {
			if !selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p) || !overlaps(p, subnets) {
				continue
			}
			member = true
			if slices.Contains(pools, p.Name) {
				continue
			}
			pools = append(pools, p.Name)
			if i := slices.IndexFunc(c.domains, func(other *v1alpha1.L2Domain) bool {
				return slices.Contains(c.domainPools[other.Name], p.Name)
			}); i >= 0 {
				c.add(Error, kindPool+"/"+p.Name, "spec.addresses", "has addresses on segments %s and %s. A pool belongs to one "+
					"L2Domain: divide it", c.domains[i].Name, d.Name)
			}
		}
		if member {
			members = append(members, a)
		}
	}
	if len(members) == 0 {
		c.add(Warning, "segment "+d.Name, "", "no L2Advertisement selects a pool with addresses in %s: there is no L2Domain "+
			"for it", joinPrefixes(subnets))
		return false
	}
	slices.Sort(pools)
	c.domainPools[d.Name] = pools
	c.selectPools(d, members, pools)
	d.Spec.ServiceSelectors = c.serviceSelectors(d.Name, members, pools)
	d.Spec.Gateways.Preferred = c.preferred(d.Name, members)
	d.Spec.NodeSelectors = intersectSelectors(c.nodeSelectors(d.Name, members), c.speakerNodes)
	return true
}

// selectPools makes a domain select pools in the way of its advertisements, if it is the only domain. Otherwise it
// lists the pools, because selectors could select pools of another segment.
func (c *conversion) selectPools(d *v1alpha1.L2Domain, members []*l2Advertisement, pools []string) {
	all := slices.ContainsFunc(members, func(a *l2Advertisement) bool { return a.spec.selectsAll() })
	only := len(c.input.Segments) == 1
	if only && all && len(pools) == len(c.allPools()) {
		return
	}
	d.Spec.IPAddressPools = pools
	if only && !all {
		d.Spec.IPAddressPools = nil
		for _, a := range members {
			d.Spec.IPAddressPools = append(d.Spec.IPAddressPools, c.layer2Pools[a.name]...)
			d.Spec.IPAddressPoolSelectors = append(d.Spec.IPAddressPoolSelectors, a.spec.IPAddressPoolSelectors...)
		}
		d.Spec.IPAddressPools = unique(d.Spec.IPAddressPools)
		return
	}
	for _, a := range members {
		if a.spec.selectsAll() || len(a.spec.IPAddressPoolSelectors) > 0 {
			c.add(Note, a.String(), "spec.ipAddressPoolSelectors", "pools are selected by label, or all of them. The L2Domain "+
				"%s lists the present ones: %s. Add new ones to its ipAddressPools", d.Name, strings.Join(pools, ", "))
		}
	}
}

// nodeSelectors returns the selectors of a domain with several advertisements: all nodes that one of them selects.
func (c *conversion) nodeSelectors(domain string, members []*l2Advertisement) []metav1.LabelSelector {
	var texts []string
	var lists [][]metav1.LabelSelector
	for _, a := range members {
		texts = append(texts, a.name+": "+formatSelectors(a.spec.NodeSelectors))
		lists = append(lists, a.spec.NodeSelectors)
	}
	for _, a := range members {
		if formatSelectors(a.spec.NodeSelectors) != formatSelectors(members[0].spec.NodeSelectors) {
			c.add(Warning, "segment "+domain, "", "the L2Advertisements have different nodeSelectors (%s). The gateways of the "+
				"L2Domain %s are nodes that any of them selects", strings.Join(texts, "; "), domain)
			break
		}
	}
	return anyOf(lists)
}

// serviceSelectors returns the selectors of the Services of a domain, which has one list for all its pools: those that
// an advertisement of the pool selects.
func (c *conversion) serviceSelectors(domain string, members []*l2Advertisement, pools []string,
) []metav1.LabelSelector {
	of := map[string][]metav1.LabelSelector{}
	for _, p := range c.pools {
		var lists [][]metav1.LabelSelector
		for _, a := range members {
			if selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p) {
				lists = append(lists, a.spec.ServiceSelectors)
			}
		}
		of[p.Name] = anyOf(lists)
	}
	first := pools[0]
	for _, pool := range pools[1:] {
		if formatSelectors(of[pool]) != formatSelectors(of[first]) {
			c.add(Error, "segment "+domain, "spec.serviceSelectors", "the L2Advertisements announce other Services of pool %s "+
				"(%s) than of pool %s (%s). An L2Domain announces the same ones of all its pools: let a pool admit its Services "+
				"by serviceAllocation.serviceSelectors instead", pool, formatSelectors(of[pool]), first, formatSelectors(of[first]))
			return nil
		}
	}
	return of[first]
}

// anyOf returns the selectors that match what one of the lists matches. An empty list matches everything.
func anyOf(lists [][]metav1.LabelSelector) []metav1.LabelSelector {
	var all []metav1.LabelSelector
	for _, list := range lists {
		if len(list) == 0 {
			return nil
		}
		for _, s := range list {
			if !slices.ContainsFunc(all, func(other metav1.LabelSelector) bool {
				return metav1.FormatLabelSelector(&s) == metav1.FormatLabelSelector(&other)
			}) {
				all = append(all, s)
			}
		}
	}
	return all
}

// preferred returns the preferences of a domain, which are those of all its advertisements.
func (c *conversion) preferred(domain string, members []*l2Advertisement) []v1alpha1.PreferredGateways {
	var all []v1alpha1.PreferredGateways
	for _, a := range members {
		for i, p := range a.spec.PreferredNodeSelectors {
			c.validSelectors(a.String(), fmt.Sprintf("spec.preferredNodeSelectors[%d].preference", i),
				[]metav1.LabelSelector{p.Preference})
			all = append(all, v1alpha1.PreferredGateways{Weight: p.Weight, Preference: p.Preference})
		}
	}
	if len(all) > 0 {
		c.add(Note, "segment "+domain, "", "preferredNodeSelectors become gateways.preferred of the L2Domain %s, for all "+
			"its pools. Shards move to a more preferred node only with failover.preempt", domain)
	}
	return all
}

// checkPool names addresses that are announced nowhere.
func (c *conversion) checkPool(p *v1alpha1.IPAddressPool) {
	ref := kindPool + "/" + p.Name
	kept := c.keptDomains(p)
	layer2 := len(kept) > 0 || slices.ContainsFunc(c.source.l2Advertisements, func(a *l2Advertisement) bool {
		return selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p)
	})
	routed := c.isRouted(p)
	// A finding about a BGPAdvertisement that is left out names its pools.
	leftOut := !routed && slices.ContainsFunc(c.source.advertisements, func(a *bgpAdvertisement) bool {
		return selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p)
	})
	switch {
	case !layer2 && !routed && !leftOut:
		c.add(Note, ref, "", "no advertisement selects it: its addresses are allocated and not announced, as with MetalLB")
	case layer2 && len(c.input.Segments)+len(kept) > 0:
		var subnets []netip.Prefix
		for _, d := range slices.Concat(c.domains, kept) {
			subnets = append(subnets, prefixes(d.Spec.Subnets)...)
		}
		only := ""
		if routed {
			only = ". BGP alone advertises it"
		}
		for _, r := range outside(p, subnets) {
			c.add(Warning, ref, "spec.addresses", "%s is in no subnet of a segment. MetalLB answers for any address; an "+
				"L2Domain announces those of its subnets only. Add the subnet to the segment%s", r, only)
		}
	}
}

// selects reports whether an advertisement or an L2Domain with these names of pools and these selectors selects a pool.
func selects(names []string, selectors []metav1.LabelSelector, p *v1alpha1.IPAddressPool) bool {
	return len(names)+len(selectors) == 0 || slices.Contains(names, p.Name) ||
		slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(labels.Set(p.Labels))
		})
}

// overlaps reports whether a pool has addresses in one of the networks.
func overlaps(p *v1alpha1.IPAddressPool, networks []netip.Prefix) bool {
	set := union(p.Spec.Addresses)
	return slices.ContainsFunc(networks, set.OverlapsPrefix)
}

// outside returns the addresses of a pool that are in none of the subnets.
func outside(p *v1alpha1.IPAddressPool, subnets []netip.Prefix) []netipx.IPRange {
	var b netipx.IPSetBuilder
	b.AddSet(union(p.Spec.Addresses))
	for _, s := range subnets {
		b.RemovePrefix(s)
	}
	set, err := b.IPSet()
	if err != nil {
		return nil // not reached: the entries are valid
	}
	return set.Ranges()
}

func joinPrefixes(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// formatSelectors returns label selectors in the form of kubectl.
func formatSelectors(selectors []metav1.LabelSelector) string {
	if len(selectors) == 0 {
		return "all"
	}
	texts := make([]string, len(selectors))
	for i := range selectors {
		texts[i] = metav1.FormatLabelSelector(&selectors[i])
	}
	return fmt.Sprintf("%q", texts)
}
