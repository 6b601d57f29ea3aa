// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodesOfEgressServicesAreReadFromLabels(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{
		"egress-service.k8s.ovn.org/shop-web": "", "egress-service.k8s.ovn.org/shop-api": "",
		"k8s.ovn.org/egress-assignable": ""}}}
	if got := Node(n, Options{}).EgressServices; !slices.Equal(got, []string{"shop-api", "shop-web"}) {
		t.Errorf("%v", got)
	}
}

// A kubelet can write any text into its Node, and the chassis becomes part of rows in all databases.
func TestChassisIsAnIdentifier(t *testing.T) {
	for id, want := range map[string]bool{
		"c0a8f2f4-6b7e-4a3e-9d61-8f1f6ad1a0c1": true, "node-1.example_com": true,
		"c3\x00": false, "c3\xff": false, "c 3": false, "c3\u2028": false, "c3\x1b[2J": false,
		strings.Repeat("c", 256): true, strings.Repeat("c", 257): false,
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationChassis: id}}}
		if got := Node(n, Options{}).Chassis; got != map[bool]string{true: id}[want] {
			t.Errorf("%q is read as %q", id, got)
		}
	}
}
