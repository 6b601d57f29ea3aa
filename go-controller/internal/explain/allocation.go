// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Reasons of links that are no reasons of conditions.
const (
	ReasonNotLoadBalancer = "NotLoadBalancer"
	ReasonOtherClass      = "OtherClass"
	ReasonDeleted         = "Deleted"
	ReasonNotProcessed    = "NotProcessed"
	ReasonInvalidValue    = "InvalidValue"
)

// addService adds the Service itself. It returns false if no controller of ours serves it.
func (p *path) addService() bool {
	s, name := p.object, p.Service.String()
	p.noteUnknownAnnotations()
	switch {
	case s.DeletionTimestamp != nil:
		p.broken(LinkService, name, ReasonDeleted, "the Service is being deleted: metadata.finalizers "+
			joined(s.Finalizers), p.kubectl("get service %s -o yaml", s.Name))
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		p.broken(LinkService, name, ReasonNotLoadBalancer, fmt.Sprintf("spec.type is %s, so the Service has no address for "+
			"clients outside the cluster", s.Spec.Type), p.kubectl(`patch service %s -p '{"spec":{"type":"LoadBalancer"}}'`, s.Name))
	case !convert.Ours(s, p.objects.ServiceOptions()):
		p.broken(LinkService, name, ReasonOtherClass, fmt.Sprintf("spec.loadBalancerClass is %s: another controller serves "+
			"the Service, or none: ovnkube-slb does not serve this class, or no longer (--load-balancer-class); the field is "+
			"immutable, so the Service must be created again to get another class", *s.Spec.LoadBalancerClass), p.mendClass())
	case p.allocated == nil && p.mayAwaitOVN():
		p.add(p.awaitsOVN())
	case p.allocated == nil:
		why := ": is one running, and does it serve Services without a class (--require-load-balancer-class)?"
		if ControllerSilent(p.objects, p.Now) != "" {
			why = ", and none has renewed its Lease: none runs, or it can't reach the API server"
		}
		p.broken(LinkService, name, ReasonNotProcessed, "no controller has written condition "+
			v1alpha1.ConditionAllocated+why, printable.Command(
			"kubectl -n %s get pods -o wide -l app.kubernetes.io/name=ovnkube-slb", p.objects.ControllerNamespace()))
	case len(p.service.Problems) > 0 && p.allocated.Status != metav1.ConditionTrue:
		p.broken(LinkService, name, p.allocated.Reason, p.allocated.Message, p.kubectl("edit service %s", s.Name))
	case p.service.OtherProxy():
		p.broken(LinkService, name, v1alpha1.ReasonOtherServiceProxy, place.OtherServiceProxy(p.service),
			p.kubectl("label service %s "+world.LabelServiceProxyName+"-", s.Name))
	default:
		link := Link{Name: LinkService, Object: name, State: OK, Message: "type LoadBalancer"}
		if _, wrong := convert.KeepConnections(s); wrong != "" {
			link.State, link.Reason, link.Message = Warning, ReasonInvalidValue, wrong
			link.Command = p.kubectl("annotate service %s "+v1alpha1.AnnotationKeepConnections+"=false --overwrite   # or true",
				s.Name)
		}
		p.add(link)
		return true
	}
	return false
}

// noteUnknownAnnotations adds a note about annotations that look like ours, as after a typing error. The controller
// does not read them.
func (p *path) noteUnknownAnnotations() {
	known := []string{v1alpha1.AnnotationLoadBalancerIPs, v1alpha1.AnnotationAddressPool,
		v1alpha1.AnnotationAllowSharedIP, v1alpha1.AnnotationKeepConnections}
	var unknown []string
	for name := range p.object.Annotations {
		if strings.HasPrefix(name, v1alpha1.GroupName+"/") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		p.remark("metadata.annotations: nothing reads %s: those of Services are %s", world.Some(unknown, 3), joined(known))
	}
}

// addressReasons are the reasons of ConditionAllocated that are about one address, not about pools.
func addressReasons() []string {
	return []string{v1alpha1.ReasonAddressInUse, v1alpha1.ReasonAddressExcluded, v1alpha1.ReasonAddressCoolingDown,
		v1alpha1.ReasonAddressConflict, v1alpha1.ReasonAddressNotInPool, v1alpha1.ReasonForeignAddress,
		v1alpha1.ReasonInvalidRequest}
}

// addPool adds the pool. It returns false if no pool allocates an address.
func (p *path) addPool() bool {
	c := p.allocated
	if c.Status == metav1.ConditionTrue {
		if p.unread("ipaddresspools") {
			return true
		}
		for _, name := range p.pools() {
			p.ok(LinkPool, name, p.usage(name))
		}
		p.addRetained()
		return true
	}
	if slices.Contains(addressReasons(), c.Reason) {
		return true
	}
	if c.Reason == v1alpha1.ReasonDomainNotReady {
		p.addNotReady()
		return false
	}
	reason, message, command := c.Reason, c.Message, ""
	pool := p.service.RequestedPool
	switch reason {
	case v1alpha1.ReasonNoPool:
		if !p.unread("ipaddresspools", "namespaces") {
			reason, message, command = p.noPool()
		}
	case v1alpha1.ReasonPoolNotFound:
		command = p.kubectl("annotate service %s "+v1alpha1.AnnotationAddressPool+"=POOL --overwrite   # existing: %s",
			p.object.Name, p.existingPools())
	case v1alpha1.ReasonNotAdmitted, v1alpha1.ReasonPoolInvalid, v1alpha1.ReasonQuotaExceeded:
		pool = p.servingPool()
		command = printable.Command("kubectl edit ipaddresspools.slb.k8s.ovn.org %s", pool)
	case v1alpha1.ReasonPoolDisabled:
		command = printable.Command("kubectl patch ipaddresspools.slb.k8s.ovn.org %s "+
			`--type=merge -p '{"spec":{"disabled":false}}'`, pool)
	case v1alpha1.ReasonPoolExhausted, v1alpha1.ReasonFamilyUnavailable:
		pool = p.servingPool()
		command = p.addRange(pool)
	case v1alpha1.ReasonClaimPending, v1alpha1.ReasonClaimRefused, v1alpha1.ReasonClaimUnusable:
		pool, command = p.servingPool(), p.mendClaims(reason)
	case v1alpha1.ReasonDisabledByMode:
		command = enable(message)
	}
	p.broken(LinkPool, pool, reason, message, command)
	return false
}

// noPool explains why no pool serves a Service that requests none.
func (p *path) noPool() (reason, message, command string) {
	if len(p.world.Pools) == 0 {
		return v1alpha1.ReasonNoPool, "there is no IPAddressPool", "kubectl apply -f FILE   # an IPAddressPool, as " +
			"docs/examples/pool.yaml, with addresses that nothing else uses"
	}
	var whys []string
	first := ""
	for _, pool := range p.world.Pools {
		why := ""
		switch a := pool.Admission; {
		case a != nil && !a.AdmitsNamespace(p.Service.Namespace):
			reason = v1alpha1.ReasonNotAdmitted
			why = fmt.Sprintf("pool %q does not serve namespace %q (spec.serviceAllocation.namespaces, namespaceSelectors)",
				pool.Name, p.Service.Namespace)
		case a != nil && !a.AdmitsLabels(p.service.Labels):
			why = fmt.Sprintf("pool %q does not serve the labels of the Service (spec.serviceAllocation.serviceSelectors)",
				pool.Name)
		case !pool.AutoAssign:
			why = fmt.Sprintf("pool %q serves only Services that request it (spec.autoAssign: false)", pool.Name)
		case pool.Disabled:
			why = fmt.Sprintf("pool %q is disabled", pool.Name)
		case len(pool.Problems) > 0:
			why = fmt.Sprintf("pool %q is invalid: %s", pool.Name, strings.Join(pool.Problems, "; "))
		default:
			continue
		}
		if first == "" {
			first = pool.Name
		}
		whys = append(whys, why)
	}
	if len(whys) == 0 {
		return v1alpha1.ReasonNoPool, p.allocated.Message, "kubectl get ipaddresspools.slb.k8s.ovn.org"
	}
	if reason == "" || len(whys) > 1 {
		reason = v1alpha1.ReasonNoPool
	}
	slices.Sort(whys)
	command = printable.Command("kubectl edit ipaddresspools.slb.k8s.ovn.org %s", first)
	if pool := objects.Named(p.objects.Pools, first); len(whys) == 1 && pool.Spec.AutoAssign != nil &&
		!*pool.Spec.AutoAssign {
		command = p.kubectl("annotate service %s "+v1alpha1.AnnotationAddressPool+"=%s", p.object.Name, first)
	}
	return reason, strings.Join(whys, "; "), command
}

// addRange returns the command that adds addresses to a pool.
func (p *path) addRange(pool string) string {
	if p.isExternal(pool) {
		return printable.Command("kubectl edit ipaddresspools.slb.k8s.ovn.org %s", pool)
	}
	return printable.Command("kubectl patch ipaddresspools.slb.k8s.ovn.org %s "+
		`--type=json -p '[{"op":"add","path":"/spec/addresses/-","value":"RANGE"}]'`, pool)
}

// lacksFamily reports whether a pool that gives addresses has none free of the family of which the Service has none.
func (p *path) lacksFamily(name string) bool {
	pool := objects.Named(p.objects.Pools, name)
	if pool != nil && pool.Spec.Disabled {
		return false
	}
	if slices.ContainsFunc(p.addrs(), netip.Addr.Is4) {
		return pool != nil && pool.Status.AvailableIPv6 == 0
	}
	return pool != nil && pool.Status.AvailableIPv4 == 0
}

// servingPool returns the name of the pool that a message about pools is about: the requested one, or the first that
// may serve the Service.
func (p *path) servingPool() string {
	if p.service.RequestedPool != "" {
		return p.service.RequestedPool
	}
	at := slices.IndexFunc(p.world.Pools, func(pool *world.Pool) bool {
		return strings.Contains(p.allocated.Message, fmt.Sprintf("pool %q", pool.Name))
	})
	if at >= 0 {
		return p.world.Pools[at].Name
	}
	// A user who must not read pools reads the name in the condition.
	if _, rest, found := strings.Cut(p.allocated.Message, `pool "`); found {
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	return "POOL"
}

// existingPools lists the names of the pools, as far as the user may know them.
func (p *path) existingPools() string {
	if p.unread("ipaddresspools") {
		return "not read"
	}
	return names(p.objects.Pools)
}

// pools returns the names of the pools of the Service's addresses.
func (p *path) pools() []string {
	var list []string
	for _, a := range p.addrs() {
		if pool := p.allocation.PoolOf(a); pool != "" && !slices.Contains(list, pool) {
			list = append(list, pool)
		}
	}
	return list
}

// isExternal reports whether a provider chooses the addresses of a pool.
func (p *path) isExternal(name string) bool {
	pool := objects.Named(p.objects.Pools, name)
	return pool != nil && pool.Spec.ExternalPool != nil
}

func (p *path) usage(name string) string {
	pool := objects.Named(p.objects.Pools, name)
	if pool == nil {
		return "the pool of the address"
	}
	if x := pool.Spec.ExternalPool; x != nil {
		return fmt.Sprintf("%s in use; the provider of %s %s chooses them",
			world.Count(int(pool.Status.AssignedIPv4+pool.Status.AssignedIPv6), "address"), x.Kind, x.Name)
	}
	var parts []string
	for _, family := range []struct {
		name            string
		assigned, avail int64
	}{
		{"IPv4", pool.Status.AssignedIPv4, pool.Status.AvailableIPv4},
		{"IPv6", pool.Status.AssignedIPv6, pool.Status.AvailableIPv6},
	} {
		if all := uint64(family.assigned) + uint64(family.avail); all > 0 { //nolint:gosec // never negative
			parts = append(parts, fmt.Sprintf("%d of %d %s addresses in use", family.assigned, all, family.name))
		}
	}
	return strings.Join(parts, "; ")
}

// addAddress adds the addresses. It returns false if the Service has none.
func (p *path) addAddress() bool {
	if c := p.allocated; c.Status != metav1.ConditionTrue {
		requested := make([]string, len(p.service.Requested))
		for i, a := range p.service.Requested {
			requested[i] = a.String()
		}
		command := p.kubectl("edit service %s", p.object.Name)
		switch c.Reason {
		case v1alpha1.ReasonAddressConflict, v1alpha1.ReasonAddressCoolingDown:
			command = p.anotherAddress()
		case v1alpha1.ReasonAddressInUse:
			command = cmp.Or(p.holder(c.Message), command)
		case v1alpha1.ReasonForeignAddress:
			command = p.kubectl("get service %s -o yaml --show-managed-fields", p.object.Name)
		}
		p.broken(LinkAddress, joined(requested), c.Reason, c.Message, command)
		return false
	}
	text := make([]string, 0, 2)
	for _, a := range p.addrs() {
		text = append(text, a.String())
	}
	link := Link{Name: LinkAddress, Object: joined(text), State: OK, Message: p.allocated.Message}
	if _, wrong := convert.KeepConnections(p.object); wrong != "" { // addService says so
		link.Message = strings.Replace(link.Message, "; "+wrong, "", 1)
	}
	switch {
	case p.allocated.Reason == v1alpha1.ReasonAddressRetained && !p.unread("ipaddresspools", "l2domains") &&
		slices.ContainsFunc(p.asked(), func(a netip.Addr) bool { return p.allocation.PoolOf(a) == "" }):
		link.Message = "the Service keeps " + joined(text) // addRetained says why that is a weakness
	case weakAllocation(p.allocated):
		link.State, link.Reason = Warning, p.allocated.Reason
		switch link.Reason {
		case v1alpha1.ReasonAddressInUse:
			link.Command = p.holder(p.allocated.Message)
		case v1alpha1.ReasonAddressConflict: // announced all the same, or see below
			link.Message += "; the report stays for up to three minutes after the host has gone"
			link.Command = p.removeFromHost(p.allocated.Message)
		case v1alpha1.ReasonNotAdmitted:
			link.Command = p.serveListed()
		case v1alpha1.ReasonPartlyAllocated:
			if pool := p.servingPool(); p.lacksFamily(pool) {
				link.Command = p.addRange(pool)
			}
		}
		if slices.ContainsFunc(p.pools(), p.isExternal) {
			link.Command = p.mendClaims(p.allocated.Reason)
		}
	}
	if c := p.verdict(v1alpha1.ReasonAddressConflict); c != nil {
		link.State, link.Reason, link.Message = stateOf(c), c.Reason, c.Message
		link.Command = p.removeFromHost(c.Message)
	}
	if len(text) == 0 {
		link.State, link.Reason, link.Message = Unknown, v1alpha1.ReasonProgramming,
			"condition "+v1alpha1.ConditionAllocated+" is True, but the status shows no address"
	}
	p.add(link)
	p.addListed()
	return len(text) > 0
}

// weakAllocation reports whether a Service got only a part of what it asks for, or keeps what it would not get again.
func weakAllocation(allocated *metav1.Condition) bool {
	return allocated.Status == metav1.ConditionTrue && allocated.Reason != v1alpha1.ReasonAllocated
}

// holder returns the command that shows which Service has an address that a message is about: conditions do not name
// those of other namespaces. It is empty if it is about no address that the Service asks for.
func (p *path) holder(message string) string {
	for _, a := range slices.Concat(p.service.Requested, p.service.ExternalIPs) {
		if !slices.Contains(p.addrs(), a) && mentions(message, a) {
			return printable.Command("kubectl slb explain %s   # which Service has it", a.String())
		}
	}
	return ""
}

// removeFromHost returns what to do about another host with an address that a condition names. The one that an L2Domain
// has as its gateway may be that of no host.
func (p *path) removeFromHost(message string) string {
	for _, a := range p.asked() {
		for _, d := range sorted(p.objects.Domains) {
			if mentions(message, a) && isGateway(d, a) {
				return printable.Command("kubectl edit l2domain %s   # spec.subnets[].gateway; or, if the router has %s: ",
					d.Name, a) + p.anotherAddress()
			}
		}
	}
	return "remove the address from that host, or " + p.anotherAddress()
}

// isGateway reports whether an L2Domain has an address as spec.subnets[].gateway.
func isGateway(d *v1alpha1.L2Domain, a netip.Addr) bool {
	return slices.ContainsFunc(d.Spec.Subnets, func(s v1alpha1.Subnet) bool {
		gateway, err := netip.ParseAddr(string(s.Gateway))
		return err == nil && gateway == a
	})
}

// anotherAddress returns the command that gets another address for the Service. None can be requested of a provider.
func (p *path) anotherAddress() string {
	if p.isExternal(p.servingPool()) {
		return p.kubectl("delete service %s   # once the provider excludes the address; then create the Service again",
			p.object.Name)
	}
	return p.kubectl("annotate service %s "+v1alpha1.AnnotationLoadBalancerIPs+"=ADDRESS --overwrite   # another one",
		p.object.Name)
}
