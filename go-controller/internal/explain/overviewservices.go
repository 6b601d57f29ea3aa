// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxSame is the number of Services that a reason has findings for: others are counted in the last of them.
const maxSame = 3

// addServices adds the Services that are not announced, and those that keep an address that their pool would not
// allocate.
func (v *overview) addServices() {
	last, more := map[string]int{}, map[string]int{} // by reason: the last finding, and the Services beyond the first ones
	count, options, weak := map[string]int{}, v.objects.ServiceOptions(), v.weakEndpoints()
	services := map[world.Key]*world.Service{}
	for _, s := range v.world.Services {
		services[s.Key] = s
	}
	for _, s := range sorted(v.objects.Services) {
		if !convert.Ours(s, options) {
			continue
		}
		v.out.Services++
		c, state := conditionOf(s)
		if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionAnnounced) {
			v.out.Announced++
		}
		key := world.Key{Namespace: s.Namespace, Name: s.Name}
		command := printable.Command("kubectl slb explain %s", s.Namespace+"/"+s.Name)
		if w := weak[key]; c == nil && w != nil {
			c, state = w, Warning
		}
		if announced := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced); c == nil &&
			lags(announced) {
			c, state = announced, Warning
		}
		if c == nil {
			l := v.warningOf(s, services[key])
			if l == nil {
				continue
			}
			c, state = &metav1.Condition{Reason: l.Reason, Message: l.Message}, l.State
			if l.Reason == ReasonListedByOthers {
				command = l.Command // explain is about one Service, and does not read others.
			}
		}
		if count[c.Reason]++; count[c.Reason] > maxSame {
			more[c.Reason]++
			continue
		}
		last[c.Reason] = len(v.out.Findings)
		v.out.Findings = append(v.out.Findings, Finding{State: state, Object: "Service " + key.String(), Reason: c.Reason,
			Message: c.Message, Command: command})
	}
	for reason, n := range more {
		v.out.Findings[last[reason]].Object += fmt.Sprintf(" and %d more", n)
	}
}

// warningOf returns the first link that explain warns about, of those that follow from Services and that no condition
// is about; nil if there is none. What is wrong with gateways and nodes has findings of its own.
func (v *overview) warningOf(s *corev1.Service, service *world.Service) *Link {
	of := *v.path
	of.Service, of.object, of.service = service.Key, s, service
	of.allocated = meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)
	of.announced = meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
	if of.addService() {
		of.addListed()
		of.addRanges()
	}
	at := slices.IndexFunc(of.links, func(l Link) bool { return l.State != OK && l.State != Unused })
	if at < 0 {
		return nil
	}
	return &of.links[at]
}

// addRanges adds which clients the source ranges of a Service admit, if it has any. That depends on what announces its
// addresses.
func (p *path) addRanges() {
	if len(p.service.SourceRanges) == 0 || len(p.asked()) == 0 ||
		p.unread("ipaddresspools", "l2domains", "nodes", "bgppeers", "bgpadvertisements") {
		return
	}
	before := len(p.links)
	for _, a := range p.asked() {
		p.addDomain(a)
	}
	p.links = p.links[:before]
	p.addClients()
}

// weakEndpoints returns, by Service, what explain warns about in endpoints of which some take connections: those of one
// family do not, or they lack a port. Such a Service is announced all the same.
func (v *overview) weakEndpoints() map[world.Key]*metav1.Condition {
	weak := map[world.Key]*metav1.Condition{}
	if v.unread("endpointslices") {
		return weak
	}
	for _, s := range v.world.Services {
		of := *v.path
		of.service = s
		counts, _ := of.countEndpoints()
		idle := counts.idle()
		if len(idle) == len(counts) {
			continue
		}
		if missing := of.portsWithoutSlice(counts); len(missing) > 0 {
			weak[s.Key] = &metav1.Condition{Reason: ReasonNoEndpointPort, Message: lacksPorts(missing)}
		} else if len(idle) > 0 {
			weak[s.Key] = &metav1.Condition{Reason: ReasonEndpointsNotReady,
				Message: fmt.Sprintf("not reachable over %s: no %[1]s endpoint takes connections", idle[0].family)}
		}
	}
	return weak
}

// conditionOf returns what a Service should not have, nil if there is nothing.
func conditionOf(s *corev1.Service) (*metav1.Condition, State) {
	allocated := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)
	announced := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
	switch {
	case announced == nil:
		return &metav1.Condition{Reason: ReasonNotProcessed, Message: "no controller has written a condition"}, Unknown
	case announced.Reason == v1alpha1.ReasonNotAllocated && allocated != nil:
		return allocated, stateOf(allocated)
	case announced.Status != metav1.ConditionTrue:
		return announced, stateOf(announced)
	case allocated != nil && weakAllocation(allocated):
		return allocated, Warning
	case announced.Reason == v1alpha1.ReasonEgressUnserved:
		return announced, Warning
	}
	return nil, OK
}

// otherClasses returns a note about Services that wait for an address and have a class that is not served. The
// controller removes its addresses and conditions from Services whose class is no longer in its list, so these look
// like those of another controller, and are no findings.
func (v *overview) otherClasses() []string {
	var list []string
	options := v.objects.ServiceOptions()
	for _, s := range sorted(v.objects.Services) {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.DeletionTimestamp == nil && !convert.Ours(s, options) &&
			len(s.Status.LoadBalancer.Ingress) == 0 {
			list = append(list, fmt.Sprintf("%s/%s (%s)", s.Namespace, s.Name, *s.Spec.LoadBalancerClass))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Services of type LoadBalancer without an address, with classes that ovnkube-slb does "+
		"not serve (%s, --load-balancer-class): %s", ReasonOtherClass, world.Some(list, maxSame))}
}
