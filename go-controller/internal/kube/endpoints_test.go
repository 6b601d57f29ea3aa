// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
