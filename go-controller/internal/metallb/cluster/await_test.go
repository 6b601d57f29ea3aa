// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Pools are created once the controller has read the newest generation of their L2Domain, or if there is none.
func TestAwaitRead(t *testing.T) {
	domains := v1alpha1.GroupVersion().WithResource("l2domains")
	domain := func(observed ...int64) *unstructured.Unstructured {
		var conditions []any
		for _, g := range observed {
			conditions = append(conditions, map[string]any{"type": "Accepted", "observedGeneration": g})
		}
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("L2Domain"))
		u.SetName("lan")
		u.SetGeneration(2)
		return u
	}
	for name, c := range map[string]struct {
		later *unstructured.Unstructured
		read  bool
		took  time.Duration
	}{
		"read after a second":      {domain(1, 2), true, time.Second},
		"an older generation read": {domain(1), false, readTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{domains: "L2DomainList"}, domain())
			time.AfterFunc(time.Second-time.Nanosecond, func() {
				if _, err := client.Resource(domains).Update(t.Context(), c.later, metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			})
			o := &v1alpha1.L2Domain{TypeMeta: metav1.TypeMeta{Kind: "L2Domain"}, ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
			began := time.Now()
			read, err := AwaitRead(t.Context(), client, o)
			if took := time.Since(began); err != nil || read != c.read || took != c.took {
				t.Errorf("%s: read %v after %s (%v), want %v after %s", name, read, took, err, c.read, c.took)
			}
		})
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{domains: "L2DomainList"})
	o := &v1alpha1.L2Domain{TypeMeta: metav1.TypeMeta{Kind: "L2Domain"}, ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	if _, err := AwaitRead(t.Context(), client, o); err == nil {
		t.Error("an L2Domain that is not there is no error")
	}
}
