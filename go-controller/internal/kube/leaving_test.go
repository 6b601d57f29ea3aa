// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// An address is not another Service's as long as a condition of the former one names it.
func TestAddressesInConditionsOfRemovedServicesLeave(t *testing.T) {
	f, _ := counted()
	left := serviceOf(corev1.ServiceTypeClusterIP)
	left.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue, Message: "192.0.2.1 from pool lan"},
		{Type: v1alpha1.ConditionExternalIPs, Status: metav1.ConditionTrue, Message: "192.0.2.9"}}
	f.setService(nil, left)
	key, addr := world.Key{Namespace: "shop", Name: "web"}, netip.MustParseAddr("192.0.2.9")
	allocated := netip.MustParseAddr("192.0.2.1") // the API server has removed it from the ingress
	if w, _ := f.Snapshot(world.Cluster{}); len(w.Leaving) != 2 || w.Leaving[addr] != key || w.Leaving[allocated] != key {
		t.Errorf("%v leave", w.Leaving)
	}
	sharer := serviceOf(corev1.ServiceTypeLoadBalancer)
	sharer.Name, sharer.Status = "sharer", left.Status
	f.setService(nil, sharer)
	if w, _ := f.Snapshot(world.Cluster{}); len(w.Leaving) != 0 ||
		!slices.Equal(w.LeavingShared[key], []netip.Addr{allocated, addr}) {
		t.Errorf("%v leave alone, %v with another Service", w.Leaving, w.LeavingShared)
	}
	// The other one is no longer served either.
	both := sharer.DeepCopy()
	both.Spec.Type = corev1.ServiceTypeClusterIP
	f.setService(sharer, both)
	first, second := world.Key{Namespace: "shop", Name: "sharer"}, key
	if w, _ := f.Snapshot(world.Cluster{}); w.Leaving[addr] != first || !slices.Contains(w.LeavingShared[second], addr) {
		t.Errorf("%v leave, %v as well", w.Leaving, w.LeavingShared)
	}
}

func TestRemovedServicesAreKeptUntilReleased(t *testing.T) {
	f, _ := counted()
	ours := serviceOf(corev1.ServiceTypeLoadBalancer)
	ours.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	ours.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue,
		Message: "192.0.2.1 from pool lan"}}
	f.setService(nil, ours)
	left := ours.DeepCopy()
	left.Spec.Type = corev1.ServiceTypeClusterIP
	f.setService(ours, left)
	key, addr := world.Key{Namespace: "shop", Name: "web"}, netip.MustParseAddr("192.0.2.1")
	w, gone := f.Snapshot(world.Cluster{})
	if gone[key] != "1" || len(w.Leaving) != 1 || w.Leaving[addr] != key {
		t.Errorf("left: %v with %v", gone, w.Leaving)
	}
	replaced := left.DeepCopy()
	replaced.Spec.Type, replaced.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new("other")
	replaced.Status.LoadBalancer.Ingress[0].IP = "192.0.2.2" // by the controller of its new class
	f.setService(left, replaced)
	// If it is ours again before our condition is removed, it has that address.
	if w, gone := f.Snapshot(world.Cluster{}); gone[key] != "1" || len(w.Leaving) != 1 || w.Leaving[addr] != key {
		t.Errorf("left: %v with %v, want the address in the condition", gone, w.Leaving)
	}
	f.setService(replaced, left)
	sharer := serviceOf(corev1.ServiceTypeLoadBalancer)
	sharer.Name, sharer.Status = "sharer", left.Status
	f.setService(nil, sharer)
	if w, _ := f.Snapshot(world.Cluster{}); len(w.Leaving) != 0 {
		t.Errorf("%v leave though another Service has them", w.Leaving)
	}
	clean := left.DeepCopy()
	clean.Status = corev1.ServiceStatus{}
	f.setService(left, clean)
	if _, gone := f.Snapshot(world.Cluster{}); len(gone) != 0 {
		t.Errorf("left: %v", gone)
	}
}

// Another client has cleared a status, and our next write follows, or one without an address. Services may wait for the
// address that the condition named until then.
func TestFreedClearedAddressCausesWakeup(t *testing.T) {
	for _, addr := range []string{"10.0.0.1", ""} {
		wakes := 0
		f := NewFacts(convert.Options{DefaultClass: true}, Hooks{Wake: func() { wakes++ }, Changed: func(world.Key) {},
			Expected: func(world.Key, []netip.Addr) bool { return true }})
		cleared := serviceOf(corev1.ServiceTypeLoadBalancer)
		cleared.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue,
			Message: "10.0.0.9 from pool lan"}}
		f.setService(nil, cleared)
		wakes = 0
		next := cleared.DeepCopy()
		next.Status.Conditions[0].Message = addr
		if addr != "" {
			next.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addr}}
		}
		f.setService(cleared, next)
		if wakes != 1 {
			t.Errorf("%d wakes after a status with %q, want 1", wakes, addr)
		}
	}
}
