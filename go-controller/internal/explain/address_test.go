// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
)

// A tenant's Services may share one address and have thousands of ports. The answer does not say of those that were not
// probed that they have no port.
func TestProbeOfASharedAddressIsLimited(t *testing.T) {
	const services, ports = 18, 20
	a := netip.MustParseAddr("10.50.0.100")
	cluster := &objects.Objects{}
	for i := range services {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web%02d", i)},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: a.String()}}
		for port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: int32(1000*(i+1) + port)})
		}
		cluster.Services = append(cluster.Services, s)
	}
	to := AddressTargets(cluster, a, Question{})
	if len(to) != 16 {
		t.Errorf("%d targets, want 16", len(to))
	}
	q := Question{Probes: []Probe{}}
	for i, target := range to {
		if first := netip.AddrPortFrom(a, uint16(1000*(i+1))); target != first {
			t.Errorf("target %d is %s, want the first port of Service %d, %s", i, target, i, first)
		}
		q.Probes = append(q.Probes, Probe{To: target})
	}
	r := Address(cluster, a, q)
	for i, s := range r.Services {
		probed := slices.ContainsFunc(s.Links, func(l Link) bool { return l.Name == LinkProbe })
		if want := i < 16; probed != want {
			t.Errorf("Service %d was probed: %t, want %t", i, probed, want)
		}
	}
	if want := []string{"16 of 360 ports were probed"}; !slices.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
}
