// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// addRetained adds the addresses that the Service has kept although their pool no longer has them. An L2Domain
// announces them still if it has them in a subnet and selects the Service, and BGP if a BGPAdvertisement selects all
// addresses.
func (p *path) addRetained() {
	var lost []string
	for _, a := range p.asked() {
		if p.allocation.PoolOf(a) != "" || p.unread("l2domains") {
			continue
		}
		_, consequence := p.layout.NotSelecting(p.service.Labels, "", a)
		if consequence == "" {
			shard, configured := p.layout.ConfiguredShardOf("", a)
			switch {
			case configured:
				consequence = fmt.Sprintf("it stays announced at layer 2, because L2Domain %s has it in a subnet", shard.Domain)
			case p.unread("bgpadvertisements"):
				consequence = "it is in no subnet of an L2Domain"
			case p.survey.Takes(p.service, a):
				consequence = "it stays advertised by BGP, because a BGPAdvertisement selects all addresses"
			default:
				lost = append(lost, a.String())
				continue
			}
		}
		p.add(Link{Name: LinkPool, State: Warning, Reason: v1alpha1.ReasonAddressRetained,
			Message: fmt.Sprintf("%s: in no IPAddressPool, as after an edit of its pool; %s", a, consequence)})
	}
	if len(lost) > 0 {
		remedy, command := p.mendRetained(joined(lost))
		p.broken(LinkPool, "", v1alpha1.ReasonAddressRetained, fmt.Sprintf("%s: in no IPAddressPool, as after its pool was "+
			"edited or deleted, and in no subnet of an L2Domain, so nothing announces it: %s", joined(lost), remedy), command)
	}
}

// mendRetained returns what lets something announce addresses again that are in no pool and in no subnet of an
// L2Domain, and the command for it. Only a pool that a BGPAdvertisement selects does.
func (p *path) mendRetained(addresses string) (remedy, command string) {
	another := "give the Service another address (create it again, or annotation " +
		v1alpha1.AnnotationLoadBalancerIPs + ")"
	var pools []string
	for _, ad := range p.world.Advertisements {
		if !world.Selects(ad.Services, p.service.Labels) {
			continue
		}
		for _, name := range objects.Named(p.objects.Advertisements, ad.Name).Spec.IPAddressPools {
			if objects.Named(p.objects.Pools, name) == nil {
				return fmt.Sprintf("create pool %s again, which BGPAdvertisement %s names, or %s", name, ad.Name, another),
					printable.Command("kubectl apply -f FILE   # an IPAddressPool, as docs/examples/pool.yaml, of the name %s "+
						"and with %s", name, addresses)
			}
		}
		if world.Fatal(ad.Findings) {
			continue
		}
		for _, name := range ad.Pools {
			if !p.isExternal(name) && !slices.Contains(pools, name) {
				pools = append(pools, name)
			}
		}
	}
	slices.Sort(pools)
	switch len(pools) {
	case 0:
		return another, p.anotherAddress()
	case 1:
		return fmt.Sprintf("add it to pool %s, which a BGPAdvertisement selects, or %s", pools[0], another),
			printable.Command("kubectl edit ipaddresspools.slb.k8s.ovn.org %s   # spec.addresses", pools[0])
	}
	return "add it to a pool that a BGPAdvertisement selects, or " + another, printable.Command("kubectl edit "+
		"ipaddresspools.slb.k8s.ovn.org POOL   # spec.addresses; selected: %s", joined(pools))
}
