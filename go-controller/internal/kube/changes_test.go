// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestChangesReportKindOfServiceChange(t *testing.T) {
	web := world.Key{Namespace: "shop", Name: "web"}
	plain := serviceOf(corev1.ServiceTypeLoadBalancer)
	served := plain.DeepCopy()
	served.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1"}}
	edited := plain.DeepCopy()
	edited.Spec.LoadBalancerIP = "10.0.0.9"
	namesake := plain.DeepCopy()
	namesake.UID = "2"
	for name, test := range map[string]struct {
		exists bool
		do     func(f *Facts)
		want   *world.Change // nil for none
		others bool
	}{
		"comes": {false, func(f *Facts) { f.setService(nil, plain) }, &world.Change{Is: &world.Service{}}, false},
		"goes":  {true, func(f *Facts) { f.setService(plain, nil) }, &world.Change{Was: &world.Service{}}, false},
		"is served": {true, func(f *Facts) {
			f.setService(plain, served)
		}, &world.Change{Was: &world.Service{}, Is: &world.Service{}}, false},
		"has endpoints": {true, func(f *Facts) {
			f.setEndpoints(nil, endpointsAt("a", "10.244.0.1"))
		}, &world.Change{Was: &world.Service{}, Is: &world.Service{}}, false},
		"asks": {true, func(f *Facts) {
			f.setService(plain, edited)
		}, &world.Change{Was: &world.Service{}, Is: &world.Service{}, SpecChanged: true}, false},
		"asks and is asked": {true, func(f *Facts) {
			f.setService(plain, edited)
			f.setEndpoints(nil, endpointsAt("a", "10.244.0.1"))
		}, &world.Change{Was: &world.Service{}, Is: &world.Service{}, SpecChanged: true}, false},
		"another in its place": {true, func(f *Facts) { f.setService(plain, nil); f.setService(nil, namesake) },
			&world.Change{Was: &world.Service{}, Is: &world.Service{}, SpecChanged: true}, false},
		"comes and goes": {false, func(f *Facts) {
			f.setService(nil, plain)
			f.setService(plain, nil)
		}, &world.Change{}, false},
		"a pool as well": {true, func(f *Facts) { f.setPool(nil, &v1alpha1.IPAddressPool{}) }, nil, true},
		"a node as well": {true, func(f *Facts) { f.setNode(nil, &corev1.Node{}) }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := counted()
			if test.exists {
				f.setService(nil, plain)
				snapshot(f)
			}
			test.do(f)
			changes := f.Changes()
			got, reported := changes.Services[web]
			if changes.Others != test.others || reported != (test.want != nil) {
				t.Fatalf("changes %+v", changes)
			}
			if reported && ((got.Was == nil) != (test.want.Was == nil) || (got.Is == nil) != (test.want.Is == nil) ||
				got.SpecChanged != test.want.SpecChanged) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if changes := f.Changes(); len(changes.Services) > 0 || changes.Others {
				t.Errorf("reported again: %+v", changes)
			}
		})
	}
}

// A change that was taken and put back comes again, with what has happened to the Service since.
func TestChangesThatArePutBackComeAgain(t *testing.T) {
	web := world.Key{Namespace: "shop", Name: "web"}
	plain := serviceOf(corev1.ServiceTypeLoadBalancer)
	edited := plain.DeepCopy()
	edited.Spec.LoadBalancerIP = "10.0.0.9"
	f, _ := counted()
	f.setService(nil, plain)
	snapshot(f)
	f.setEndpoints(nil, endpointsAt("a", "10.244.0.1"))
	taken := f.Changes().Services
	f.PutBack(taken)
	again := f.Changes().Services
	if len(again) != 1 || again[web] != taken[web] {
		t.Errorf("changes %+v, want %+v", again, taken)
	}
	f.setService(plain, edited)
	f.PutBack(taken)
	later := f.Changes().Services
	if c := later[web]; len(later) != 1 || c.Was != taken[web].Was || c.Is == taken[web].Is || !c.SpecChanged {
		t.Errorf("changes %+v since %+v", later, taken)
	}
	f.PutBack(taken)
	snapshot(f)
	if left := f.Changes().Services; len(left) > 0 {
		t.Errorf("changes %+v after a snapshot that contains them", left)
	}
}
