// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
