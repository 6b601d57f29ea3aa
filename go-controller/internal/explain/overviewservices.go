// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
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
	count, options, partly := map[string]int{}, v.objects.ServiceOptions(), v.withoutEndpoint()
	listed := v.listedByOthers()
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
		if l, ok := listed[key]; c == nil && ok {
			c, state = &metav1.Condition{Reason: ReasonListedByOthers, Message: l.message()}, Warning
			command = l.command() // That explains one Service, and does not read others.
		}
		if f := partly[key]; c == nil && f != 0 {
			c, state = &metav1.Condition{Reason: ReasonEndpointsNotReady,
				Message: fmt.Sprintf("not reachable over %s: no %[1]s endpoint takes connections", f)}, Warning
		}
		if c == nil {
			continue
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

// withoutEndpoint returns the Services with addresses of both families of which one has no endpoint that takes
// connections, with this family. They are announced all the same.
func (v *overview) withoutEndpoint() map[world.Key]world.Family {
	partly := map[world.Key]world.Family{}
	for _, s := range v.world.Services {
		idle := []world.Family{}
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			has := slices.ContainsFunc(s.Assigned, func(a netip.Addr) bool { return world.FamilyOf(a) == f })
			taken := false
			for range plan.Endpoints(s, f) {
				taken = true
				break
			}
			if has && !taken {
				idle = append(idle, f)
			}
		}
		if len(idle) == 1 && len(s.Assigned) > 1 {
			partly[s.Key] = idle[0]
		}
	}
	return partly
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
	case allocated != nil && allocated.Reason == v1alpha1.ReasonAddressRetained:
		return allocated, Warning
	}
	return nil, OK
}
