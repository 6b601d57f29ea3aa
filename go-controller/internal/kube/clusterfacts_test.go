// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// An informer that was cut off reports a Node that was recreated meanwhile as one that has changed.
func TestNodeRecreatedWhileCutOffIsTheNewOne(t *testing.T) {
	f, _ := counted()
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.Unix(1, 0)}}
	again := old.DeepCopy()
	again.CreationTimestamp = metav1.Unix(2, 0)
	f.setNode(nil, old)
	f.setNode(old, again)
	if got := snapshot(f).Nodes[0].Created; !got.Equal(again.CreationTimestamp.Time) {
		t.Errorf("created at %s, want %s", got, again.CreationTimestamp)
	}
}

// A cluster may have thousands of namespaces, each of which is an event at the start: it converts no pool, and the next
// snapshot resolves the namespaces of a pool once. The leases of the pool, which may be thousands, are not read again.
func TestNamespacesConvertNoPools(t *testing.T) {
	f, wakes := counted()
	lan := &v1alpha1.IPAddressPool{
		ObjectMeta: metav1.ObjectMeta{Name: "lan"},
		Spec: v1alpha1.IPAddressPoolSpec{
			ServiceAllocation: &v1alpha1.ServiceAllocation{
				Namespaces:         []string{"ns1"},
				NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "gold"}}},
			},
			ReuseDelay: &metav1.Duration{Duration: time.Hour},
		},
		Status: v1alpha1.IPAddressPoolStatus{Leases: []v1alpha1.AddressLease{{Address: "10.0.0.1"}}},
	}
	f.setPool(nil, lan)
	before := snapshot(f).Pools[0]
	for i := range 4 {
		f.setNamespace(nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("ns", i), Labels: map[string]string{"tier": []string{"gold", "gold", "tin", "gold"}[i]},
		}})
		if f.pools["lan"].world != before {
			t.Fatalf("namespace %d converts a pool", i)
		}
	}
	if got := wakes.Load(); got != 3 {
		t.Errorf("%d wakes, want 3: of the pool and of two namespaces that it did not serve", got)
	}
	after := snapshot(f).Pools[0]
	if want := []string{"ns0", "ns1", "ns3"}; !slices.Equal(after.Admission.Namespaces, want) {
		t.Errorf("the pool serves %v, want %v", after.Admission.Namespaces, want)
	}
	if want := []string{"ns1"}; !slices.Equal(before.Admission.Namespaces, want) {
		t.Errorf("the snapshot before has %v, want %v", before.Admission.Namespaces, want)
	}
	if &after.Leases[0] != &before.Leases[0] {
		t.Error("the leases were read again")
	}
	if snapshot(f).Pools[0] != after {
		t.Error("the namespaces of a pool were resolved without a change")
	}
}
