// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var loadKinds = sync.OnceValues(func() (Kinds, error) { return LoadKinds("../../../../dist/manifests/crds") })

// with runs a test with a new Server, in a bubble.
func with(t *testing.T, test func(*testing.T, *Server, dynamic.Interface, kubernetes.Interface)) {
	t.Helper()
	kinds, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := New(kinds)
		if err != nil {
			t.Fatal(err)
		}
		config := s.Client("test").Config()
		test(t, s, dynamic.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config))
	})
}

func pools(c dynamic.Interface) dynamic.ResourceInterface {
	return c.Resource(v1alpha1.GroupVersion().WithResource("ipaddresspools"))
}

func pool(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion().String(),
		"kind": "IPAddressPool", "metadata": map[string]any{"name": "lan"}, "spec": spec}}
}

func TestCustomObjectsAreDefaultedPrunedAndValidated(t *testing.T) {
	with(t, func(t *testing.T, _ *Server, c dynamic.Interface, _ kubernetes.Interface) {
		got, err := pools(c).Create(t.Context(), pool(map[string]any{"addresses": []any{"10.60.0.1"}, "unknown": "x"}),
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec, _, _ := unstructured.NestedMap(got.Object, "spec")
		if spec["autoAssign"] != true || spec["unknown"] != nil || got.GetGeneration() != 1 {
			t.Errorf("stored: %v", got.Object)
		}
		for text, spec := range map[string]map[string]any{
			`strict decoding error: unknown field "spec.unknown"`: {"addresses": []any{"10.60.0.1"}, "unknown": "x"},
			`IPAddressPool.slb.k8s.ovn.org "lan" is invalid: spec.addresses[0]: Invalid value: "10.60.0.300": `: {
				"addresses": []any{"10.60.0.300"}},
			`spec: Invalid value: a pool needs addresses or an externalPool`: {},
			`spec.externalPool.kind: Required value`: {
				"externalPool": map[string]any{"apiGroup": "example.org", "name": "a"}},
		} {
			_, err := pools(c).Create(t.Context(), pool(spec), metav1.CreateOptions{FieldValidation: "Strict"})
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v: error %v, want %s", spec, err, text)
			}
		}
	})
}

func TestUpdateOfOldVersionConflicts(t *testing.T) {
	with(t, func(t *testing.T, _ *Server, c dynamic.Interface, _ kubernetes.Interface) {
		old, err := pools(c).Create(t.Context(), pool(map[string]any{"addresses": []any{"10.60.0.1"}}),
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		next := old.DeepCopy()
		_ = unstructured.SetNestedField(next.Object, int64(7), "status", "assignedIPv4") // Its parents are maps.
		after, err := pools(c).UpdateStatus(t.Context(), next, metav1.UpdateOptions{})
		if err != nil || after.GetGeneration() != 1 || after.GetResourceVersion() == old.GetResourceVersion() {
			t.Errorf("status: %v, %v", after, err)
		}
		same, err := pools(c).UpdateStatus(t.Context(), after, metav1.UpdateOptions{})
		if err != nil || same.GetResourceVersion() != after.GetResourceVersion() {
			t.Errorf("without a change: %v, %v", same, err)
		}
		if _, err := pools(c).UpdateStatus(t.Context(), next, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("old version: %v", err)
		}
	})
}

func TestObjectWithFinalizerIsDeletedAfterItsRemoval(t *testing.T) {
	with(t, func(t *testing.T, _ *Server, _ dynamic.Interface, c kubernetes.Interface) {
		nodes := c.CoreV1().Nodes()
		created, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Finalizers: []string{"example.org/wait"}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes.Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if n, err := nodes.Get(t.Context(), "n1", metav1.GetOptions{}); err != nil || n.DeletionTimestamp == nil {
			t.Errorf("deleted: %v, %v", n, err)
		}
		if _, err := nodes.Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes.Get(t.Context(), "n1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("without a finalizer: %v", err)
		}
		again, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			metav1.CreateOptions{})
		if err != nil || again.UID == created.UID {
			t.Errorf("created again: %v, %v", again, err)
		}
	})
}

// next returns the type and the name of the next event of a watch.
func next(w watch.Interface) string {
	e, open := <-w.ResultChan()
	if o, ok := e.Object.(metav1.Object); ok && open {
		return string(e.Type) + " " + o.GetName()
	}
	return string(e.Type)
}

func TestWatchesDeliverChangesThatTheySelect(t *testing.T) {
	with(t, func(t *testing.T, s *Server, _ dynamic.Interface, c kubernetes.Interface) {
		namespaces := c.CoreV1().Namespaces()
		labelled := func(name, value string) {
			if _, err := namespaces.Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"tier":"`+value+`"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		labelled("default", "gold")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		yes := true
		w, err := namespaces.Watch(ctx, metav1.ListOptions{LabelSelector: "tier=gold", SendInitialEvents: &yes,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		labelled("kube-system", "gold")
		labelled("default", "none")
		for _, want := range []string{"ADDED default", "BOOKMARK ", "ADDED kube-system", "DELETED default"} {
			if got := next(w); got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		}
		s.SetAway(true)
		if got := next(w); got != "" {
			t.Errorf("away: event %q", got)
		}
	})
}

func TestCompactedVersionExpires(t *testing.T) {
	with(t, func(t *testing.T, s *Server, _ dynamic.Interface, c kubernetes.Interface) {
		list, err := c.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		name := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		if _, err := c.CoreV1().Namespaces().Create(t.Context(), name, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.Compact()
		w, err := c.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if e := <-w.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Errorf("event %+v", e)
		}
	})
}

func TestServicesGetDefaultsAndAddresses(t *testing.T) {
	with(t, func(t *testing.T, _ *Server, _ dynamic.Interface, c kubernetes.Interface) {
		policy := corev1.IPFamilyPolicyRequireDualStack
		got, err := c.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
				IPFamilyPolicy: &policy, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Spec.ClusterIPs) != 2 || got.Spec.Ports[0].NodePort != firstNodePort ||
			got.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyCluster ||
			got.Spec.Ports[0].TargetPort.IntValue() != 80 {
			t.Errorf("stored: %+v", got.Spec)
		}
		got.Spec.Type = corev1.ServiceTypeClusterIP
		after, err := c.CoreV1().Services("default").Update(t.Context(), got, metav1.UpdateOptions{})
		if err != nil || after.Spec.Ports[0].NodePort != 0 || after.Spec.ClusterIP != got.Spec.ClusterIP {
			t.Errorf("another type: %+v, %v", after, err)
		}
	})
}

// A Service loses its addresses with its type, and cannot get any while it has another one. Conditions stay. A real API
// server does the same (pkg/registry/core/service/strategy.go there).
func TestServiceOfAnotherTypeHasNoAddresses(t *testing.T) {
	with(t, func(t *testing.T, _ *Server, _ dynamic.Interface, c kubernetes.Interface) {
		services, ctx := c.CoreV1().Services("default"), t.Context()
		web, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		web.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		web.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		if web, err = services.UpdateStatus(ctx, web, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		late := web.DeepCopy()
		late.ResourceVersion = ""
		for _, kind := range []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer} {
			web.Spec.Type = kind
			if web, err = services.Update(ctx, web, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if len(web.Status.LoadBalancer.Ingress) > 0 || len(web.Status.Conditions) != 1 {
				t.Errorf("type %s: %+v", kind, web.Status)
			}
			_, err := services.UpdateStatus(ctx, late, metav1.UpdateOptions{})
			if refused := kind == corev1.ServiceTypeClusterIP; apierrors.IsInvalid(err) != refused {
				t.Errorf("type %s: a late write of addresses: %v", kind, err)
			}
		}
	})
}

func TestFaultsDelayAndPrecedeWrites(t *testing.T) {
	with(t, func(t *testing.T, s *Server, _ dynamic.Interface, c kubernetes.Interface) {
		patch := func() error {
			_, err := c.CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"a":"b"},"resourceVersion":"2"}}`), metav1.PatchOptions{})
			return err
		}
		s.Delay("namespaces", time.Minute)
		start := time.Now()
		if err := patch(); err != nil || time.Since(start) < time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		s.Delay("namespaces", 0)
		s.Rival("namespaces", 1)
		if err := patch(); !apierrors.IsConflict(err) {
			t.Errorf("after another client: %v", err)
		}
		other := s.Client("other")
		other.Cut()
		namespaces := kubernetes.NewForConfigOrDie(other.Config()).CoreV1().Namespaces()
		_, err := namespaces.Get(t.Context(), "default", metav1.GetOptions{})
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("cut off: %v", err)
		}
	})
}
