// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"cmp"
	"slices"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// existing are the objects of slb.k8s.ovn.org that the cluster has before the import. They count besides the converted
// ones, of which each replaces the one of its kind and name.
type existing struct {
	// names are KIND/NAME of all, sorted.
	names          []string
	pools          []*v1alpha1.IPAddressPool
	domains        []*v1alpha1.L2Domain
	peers          []*v1alpha1.BGPPeer
	advertisements []*v1alpha1.BGPAdvertisement
	communities    []*v1alpha1.Community
}

func readExisting(objects []*unstructured.Unstructured, fs *findings) *existing {
	e := &existing{}
	for _, o := range objects {
		name := o.GetKind() + "/" + o.GetName()
		var err error
		switch o.GetKind() {
		case kindPool:
			e.pools, err = decoded(e.pools, o)
		case kindL2Domain:
			e.domains, err = decoded(e.domains, o)
		case kindPeer:
			e.peers, err = decoded(e.peers, o)
		case kindBGPAdvertisement:
			e.advertisements, err = decoded(e.advertisements, o)
		case kindCommunity:
			e.communities, err = decoded(e.communities, o)
		}
		if err != nil {
			fs.add(Warning, name, "", "exists in the cluster and can't be read: %v", err)
		}
		e.names = append(e.names, name)
	}
	slices.Sort(e.names)
	return e
}

func decoded[T any](list []*T, o *unstructured.Unstructured) ([]*T, error) {
	v := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, v); err != nil {
		return list, err
	}
	return append(list, v), nil
}

// exists reports whether the cluster has an object, or will have it after the import.
func (c *conversion) exists(kind, name string) bool {
	return c.isConverted(kind, name) || slices.Contains(c.existing.names, kind+"/"+name)
}

// allPools returns the pools after the import.
func (c *conversion) allPools() []*v1alpha1.IPAddressPool {
	pools := slices.Clone(c.pools)
	for _, p := range c.existing.pools {
		if !c.isConverted(kindPool, p.Name) {
			pools = append(pools, p)
		}
	}
	return pools
}

// keptDomains returns the L2Domains of the cluster that select a pool and that no segment replaces.
func (c *conversion) keptDomains(p *v1alpha1.IPAddressPool) []*v1alpha1.L2Domain {
	var domains []*v1alpha1.L2Domain
	for _, d := range c.existing.domains {
		replaced := slices.ContainsFunc(c.input.Segments, func(s Segment) bool { return s.Name() == d.Name })
		if !replaced && selects(d.Spec.IPAddressPools, d.Spec.IPAddressPoolSelectors, p) {
			domains = append(domains, d)
		}
	}
	return domains
}

// isRouted reports whether a BGPAdvertisement selects a pool: a converted one, or one of the cluster.
func (c *conversion) isRouted(p *v1alpha1.IPAddressPool) bool {
	return slices.ContainsFunc(c.objects, func(o Object) bool {
		a, is := o.(*v1alpha1.BGPAdvertisement)
		return is && selects(a.Spec.IPAddressPools, a.Spec.IPAddressPoolSelectors, p)
	}) || slices.ContainsFunc(c.existing.advertisements, func(a *v1alpha1.BGPAdvertisement) bool {
		return !c.isConverted(kindBGPAdvertisement, a.Name) &&
			selects(a.Spec.IPAddressPools, a.Spec.IPAddressPoolSelectors, p)
	})
}

// isServed reports whether L2Domains of the cluster have all pools that an L2Advertisement selects.
func (c *conversion) isServed(a *l2Advertisement) bool {
	selected := 0
	for _, p := range c.pools {
		if !selects(a.spec.IPAddressPools, a.spec.IPAddressPoolSelectors, p) {
			continue
		}
		selected++
		if len(c.keptDomains(p)) == 0 {
			return false
		}
	}
	return selected > 0
}

// warnOfDuplicates names BGPPeers of the cluster with the same router as a converted one.
func (c *conversion) warnOfDuplicates(ref string, p *v1alpha1.BGPPeer) {
	port := func(p *v1alpha1.BGPPeer) int32 { return cmp.Or(p.Spec.PeerPort, v1alpha1.DefaultPeerPort) }
	for _, o := range c.existing.peers {
		if o.Name != p.Name && o.Spec.PeerAddress == p.Spec.PeerAddress && o.Spec.Interface == p.Spec.Interface &&
			o.Spec.SourceAddress == p.Spec.SourceAddress && port(o) == port(p) {
			c.add(Warning, ref, "", "BGPPeer %s of the cluster has the same router: nodes of both have one session, with the "+
				"settings of %[1]s, which is older (DuplicatePeer). Delete one of them", o.Name)
		}
	}
}

// warnOfSameSegment names L2Domains of the cluster on the physical network and VLAN of a segment that becomes another
// one.
func (c *conversion) warnOfSameSegment() {
	for _, imported := range c.domains {
		for _, d := range c.existing.domains {
			if d.Name != imported.Name && d.Spec.PhysicalNetwork == imported.Spec.PhysicalNetwork &&
				d.Spec.VLAN == imported.Spec.VLAN {
				c.add(Warning, "segment "+imported.Name, "", "L2Domain %s of the cluster is on the same physicalNetwork and VLAN: "+
					"each of the two has gateways of its own there. To have one, add the pools (%s) to spec.ipAddressPools of %[1]s, "+
					"and import without this segment", d.Name, strings.Join(c.domainPools[imported.Name], ", "))
			}
		}
	}
}

// checkExisting names pools that have addresses of pools of the cluster, pools that L2Domains of the cluster have
// already, and the objects that stay as they are.
func (c *conversion) checkExisting() {
	for _, p := range c.pools {
		ref := kindPool + "/" + p.Name
		for _, other := range c.existing.pools {
			var shared netipx.IPSetBuilder
			shared.AddSet(union(p.Spec.Addresses))
			shared.Intersect(union(other.Spec.Addresses))
			set, err := shared.IPSet()
			if err != nil || len(set.Ranges()) == 0 || c.isConverted(kindPool, other.Name) {
				continue
			}
			c.add(Error, ref, "spec.addresses", "%s is in IPAddressPool %s of the cluster, too: the API server refuses the "+
				"pool. Remove the addresses from one of them", set.Ranges()[0], other.Name)
		}
		for _, d := range c.keptDomains(p) {
			for _, imported := range c.domains {
				if slices.Contains(c.domainPools[imported.Name], p.Name) {
					c.add(Error, ref, "", "L2Domain %s of the cluster has it already, so that L2Domain %s would not announce it. A "+
						"pool belongs to one L2Domain: edit or delete %[1]s, or import without this segment", d.Name, imported.Name)
				}
			}
		}
	}
	c.warnOfSameSegment()
	var kept []string
	for _, name := range c.existing.names {
		if kind, object, _ := strings.Cut(name, "/"); !c.isConverted(kind, object) {
			kept = append(kept, name)
		}
	}
	if len(kept) > 0 {
		const most = 10
		c.add(Note, "", "", "the cluster has these objects of slb.k8s.ovn.org besides, which stay as they are: %s",
			world.Some(kept, most))
	}
}
