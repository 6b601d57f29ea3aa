// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A change of endpoints must not be as expensive as the Service is large: tenants write both.
func TestEndpointsDoNotConvertTheServiceAgain(t *testing.T) {
	f, _ := counted()
	s := serviceOf(corev1.ServiceTypeLoadBalancer)
	s.Spec.ExternalIPs = []string{"192.0.2.1", "192.0.2.2"}
	f.setService(nil, s)
	was := snapshot(f).Services[0]
	for _, n := range []int{3, 1, 2} {
		f.setEndpoints(nil, endpointsAt(fmt.Sprint("web-", n), fmt.Sprint("10.244.0.", n)))
	}
	f.setEndpoints(endpointsAt("web-1", "10.244.0.1"), endpointsAt("web-1", "10.244.0.1"))
	is := snapshot(f).Services[0]
	if &was.ExternalIPs[0] != &is.ExternalIPs[0] {
		t.Error("the Service was converted again")
	}
	for i, slice := range is.Slices {
		if got, want := slice.Endpoints[0].Addr.String(), fmt.Sprint("10.244.0.", i+1); got != want || len(is.Slices) != 3 {
			t.Errorf("slice %d of %d has %s, want %s: they are not in the order of their names", i, len(is.Slices), got, want)
		}
	}
}

// Nor may each event of a Service be as expensive as its source ranges, for example each status write of ours.
func TestSourceRangesAreMergedOnce(t *testing.T) {
	f, _ := counted()
	ranges := func(list ...string) map[world.Family][]netip.Prefix {
		s := serviceOf(corev1.ServiceTypeLoadBalancer)
		s.Spec.IPFamilies, s.Spec.LoadBalancerSourceRanges = []corev1.IPFamily{corev1.IPv4Protocol}, list
		f.setService(f.Service(world.Key{Namespace: "shop", Name: "web"}), s)
		return snapshot(f).Services[0].SourceRanges
	}
	first, again := ranges("192.0.2.0/24"), ranges("192.0.2.0/24")
	if &first[world.IPv4][0] != &again[world.IPv4][0] {
		t.Error("equal ranges are merged again")
	}
	if got := ranges("198.51.100.0/24")[world.IPv4]; len(got) != 1 || got[0].String() != "198.51.100.0/24" {
		t.Errorf("other ranges: %v", got)
	}
	if bad, good := ranges("bad")[world.IPv4], ranges("192.0.2.0/24")[world.IPv4]; len(bad) != 0 || len(good) != 1 {
		t.Errorf("a range that can't be read admits %v, and %v after it was corrected", bad, good)
	}
}

// Nor may it be as expensive as the Service has EndpointSlices: with 40,000 of them, reading them all took 9 s.
func TestEndpointsAreReadOnce(t *testing.T) {
	f, _ := counted()
	f.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
	snapshot(f)
	const n = 4000
	all := make([]*endpoints, n)
	for i := range all {
		all[i] = endpointsAt(fmt.Sprintf("web-%04d", i), "10.244.0.1")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, e := range all {
		f.setEndpoints(nil, e)
	}
	changed := f.Changes().Services
	runtime.ReadMemStats(&after)
	change := changed[world.Key{Namespace: "shop", Name: "web"}]
	if change.Is == nil || len(change.Is.Slices) != n || len(change.Was.Slices) != 0 {
		t.Fatalf("%d changes", len(changed))
	}
	// A list of all that were read, for each one, would take 60 MB.
	if size := after.TotalAlloc - before.TotalAlloc; size > 4<<20 {
		t.Errorf("reading %d EndpointSlices allocates %d KB", n, size>>10)
	}
}

func TestEqualPortsAreStoredOnce(t *testing.T) {
	f, _ := counted()
	f.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
	for i, port := range []int32{80, 80, 81, 80} {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{
			{Port: &port}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}}}}
		s.Namespace, s.Name = "shop", fmt.Sprint("web-", i)
		s.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
		f.setEndpoints(nil, keepEndpoints(s))
	}
	list := snapshot(f).Services[0].Slices
	if &list[0].Ports[0] != &list[1].Ports[0] || list[2].Ports[0].Port != 81 || list[3].Ports[0].Port != 80 {
		t.Errorf("%+v", list)
	}
}

// The hash of a selector, which may take longest of all, stays until the selector changes.
func TestHashOfTheSelectorIsKeptWithTheSelector(t *testing.T) {
	f, _ := counted()
	hash := func(key, note, app string) string {
		s := serviceOf(corev1.ServiceTypeLoadBalancer)
		s.Annotations = map[string]string{v1alpha1.AnnotationAllowSharedIP: key, "note": note}
		s.Spec.Selector = map[string]string{"app": app}
		f.setService(f.Service(world.Key{Namespace: "shop", Name: "web"}), s)
		keep := snapshot(f).Services[0].SelectorHash
		if keep == nil {
			return ""
		}
		return keep(func() string { return note + app })
	}
	for _, step := range []struct{ key, note, app, want string }{
		{"", "1", "web", ""}, // shares no address
		{"key", "2", "web", "2web"},
		{"key", "3", "web", "2web"},
		{"key", "4", "db", "4db"},
		{"key", "5", "web", "5web"},
	} {
		if got := hash(step.key, step.note, step.app); got != step.want {
			t.Errorf("%+v: got %q", step, got)
		}
	}
}
