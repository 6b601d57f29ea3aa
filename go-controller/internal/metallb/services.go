// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// checkServices compares the addresses that Services have, and the pools that they request, with the converted pools.
// The controller adopts an address that a pool could have allocated, and leaves all others as they are.
func (c *conversion) checkServices() {
	services, adopted, ours := 0, 0, 0
	holders := map[netip.Addr]*corev1.Service{}
	list := slices.Clone(c.input.Services)
	for _, s := range c.source.services {
		same := func(o *corev1.Service) bool { return o.Namespace == s.Namespace && o.Name == s.Name }
		if !slices.ContainsFunc(c.input.Services, same) {
			list = append(list, s)
		}
	}
	for _, s := range byName(list) {
		addrs, ref, class := addresses(s), s.Namespace+"/"+s.Name, s.Spec.LoadBalancerClass
		foreign := class != nil && *class != v1alpha1.LoadBalancerClass
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer && !foreign {
			c.checkPoolRequest(ref, s)
		}
		if len(addrs) == 0 {
			if foreign && c.isOfMetalLB(s) {
				c.add(Warning, ref, "spec.loadBalancerClass", "%s can't be changed. To move the Service, recreate it without a "+
					"class or with %s", *class, v1alpha1.LoadBalancerClass)
			}
			continue
		}
		if apimeta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionAllocated) {
			ours++
			continue
		}
		services++
		if foreign {
			c.add(Warning, ref, "spec.loadBalancerClass", "%s can't be changed, and its controller keeps the Service. To move "+
				"it, recreate it without a class or with %s, and with its address in metadata.annotations[%s]", *class,
				v1alpha1.LoadBalancerClass, v1alpha1.AnnotationLoadBalancerIPs)
			continue
		}
		keeps := true
		for _, a := range addrs {
			keeps = c.checkAddress(ref, a) && keeps
			if other := holders[a]; other != nil && other.Namespace != s.Namespace {
				c.add(Note, ref, "status.loadBalancer.ingress", "%s is shared with %s/%s of another namespace, and stays so. "+
					"Others join them only if their pool has sharing: Cluster, which is what MetalLB allows", a,
					other.Namespace, other.Name)
				continue
			}
			holders[a] = s
		}
		if keeps {
			adopted++
		}
	}
	if services > 0 {
		c.add(Note, "", "", "%d of %d Services with addresses keep them: the controller adopts what a pool could have "+
			"allocated", adopted, services)
	}
	if ours > 0 {
		c.add(Note, "", "", "Services that have their addresses from pools of slb.k8s.ovn.org already: %d", ours)
	}
}

// isOfMetalLB reports whether a Service with a class is MetalLB's although it has no address: it has one of its
// annotations, or the class that MetalLB serves.
func (c *conversion) isOfMetalLB(s *corev1.Service) bool {
	if slices.ContainsFunc(c.source.workloads, func(w *workload) bool { return w.class == *s.Spec.LoadBalancerClass }) {
		return true
	}
	for name := range s.Annotations {
		if strings.HasPrefix(name, "metallb.io/") || strings.HasPrefix(name, "metallb.universe.tf/") {
			return true
		}
	}
	return false
}

// checkAddress reports whether a pool could have allocated an address.
func (c *conversion) checkAddress(ref string, a netip.Addr) bool {
	const field = "status.loadBalancer.ingress"
	pools := c.allPools()
	i := slices.IndexFunc(pools, func(p *v1alpha1.IPAddressPool) bool { return union(p.Spec.Addresses).Contains(a) })
	if i < 0 {
		c.add(Warning, ref, field, "%s is in no pool: the Service keeps the address, and it is not announced "+
			"(ForeignAddress). Add it to a pool", a)
		return false
	}
	p := pools[i]
	if union(p.Spec.Exclude).Contains(a) {
		c.add(Warning, ref, field, "%s is in exclude of pool %s (ForeignAddress)", a, p.Name)
		return false
	}
	if last := a.As4; a.Is4() && p.Spec.AvoidBuggyIPs && (last()[3] == 0 || last()[3] == 255) {
		c.add(Warning, ref, field, "%s is excluded by avoidBuggyIPs of pool %s (ForeignAddress)", a, p.Name)
		return false
	}
	domains := c.keptDomains(p)
	for _, d := range c.domains {
		if slices.Contains(c.domainPools[d.Name], p.Name) {
			domains = append(domains, d)
		}
	}
	for _, d := range domains {
		for _, s := range d.Spec.Subnets {
			if use := specialUse(s, a); use != "" {
				c.add(Warning, ref, field, "%s is %s of segment %s, and is not adopted (ForeignAddress)", a, use, d.Name)
				return false
			}
		}
	}
	return true
}

// specialUse returns what an address is on a subnet, if no Service can have it.
func specialUse(s v1alpha1.Subnet, a netip.Addr) string {
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil || !p.Contains(a) {
		return ""
	}
	hosts := p.Bits() < p.Addr().BitLen()-1
	switch gateway, err := s.Gateway.Parse(); {
	case err == nil && gateway == a:
		return "the next hop"
	case hosts && a == p.Addr():
		return "the first address"
	case hosts && a.Is4() && a == netipx.PrefixLastIP(p):
		return "the broadcast address"
	}
	return ""
}

// addresses returns the addresses in the status of a Service of type LoadBalancer.
func addresses(s *corev1.Service) []netip.Addr {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	var out []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(ingress.IP); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func byName(services []*corev1.Service) []*corev1.Service {
	return slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
