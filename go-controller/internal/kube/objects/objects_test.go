// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Commands that an explanation names must be for the namespace of this installation.
func TestHome(t *testing.T) {
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ovnkube-node-1"}}
	}
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ours", Name: "ovnkube-slb"}}
	for name, c := range map[string]struct {
		objects Objects
		want    string
	}{
		"nothing is known":                {Objects{}, "ovn-kubernetes"},
		"OVN-Kubernetes":                  {Objects{Pods: []*corev1.Pod{pod("ovn-kubernetes")}}, "ovn-kubernetes"},
		"OpenShift":                       {Objects{Pods: []*corev1.Pod{pod("openshift-ovn-kubernetes")}}, "ovnkube-slb"},
		"a controller in other manifests": {Objects{Leader: leader, Pods: []*corev1.Pod{pod("ovn-kubernetes")}}, "ours"},
	} {
		if got := c.objects.Home(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
