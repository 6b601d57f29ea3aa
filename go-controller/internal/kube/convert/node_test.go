// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
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
