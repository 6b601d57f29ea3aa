// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A tenant's Services may list one address any number of times and have thousands of ports: neither is multiplied.
func TestListingsOfOneAddress(t *testing.T) {
	const ports, times = 3000, 20000
	a := netip.MustParseAddr("10.50.0.103")
	of := &world.Service{Key: world.Key{Namespace: "evil", Name: "v"}, Given: []netip.Addr{a}}
	by := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "o"},
		Spec: corev1.ServiceSpec{ExternalIPs: slices.Repeat([]string{a.String()}, times)}}
	for i := range ports {
		of.Ports = append(of.Ports, world.Port{Protocol: "TCP", Port: uint16(1 + i)})
		by.Spec.Ports = append(by.Spec.Ports, corev1.ServicePort{Protocol: "TCP", Port: int32(10001 + i)})
	}
	p := &path{world: &world.Snapshot{Services: []*world.Service{of}}}
	p.objects = &objects.Objects{}
	p.objects.Services = append(p.objects.Services, by)
	if found := p.listedByOthers(); len(found) > 0 {
		t.Error(found)
	}
}

// An address that only a Service asks for is not reachable, and the answer is not about the Service's own address.
func TestAddressOfNoServiceIsNotReachable(t *testing.T) {
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/address/external-not-served.txtar")
	if err != nil {
		t.Fatal(err)
	}
	s, err := run(base, archive)
	if err != nil {
		t.Fatal(err)
	}
	r := Address(s.Objects, s.address, s.question)
	if len(r.Services) != 1 || r.Services[0].Reachable != No || r.Reachable() {
		t.Errorf("reachable: %v, by %d Services", r.Reachable(), len(r.Services))
	}
}
