// SPDX-License-Identifier: Apache-2.0

package nodelease

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The Lease contains the reports, is renewed at their pace, and keeps annotations of other writers.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}})
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		r, err := New(leases, kube.CoreV1().Nodes(), "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		go r.Run(t.Context())
		expect := func(want map[string]world.Fault, p pace) {
			t.Helper()
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if age := time.Since(l.Spec.RenewTime.Time); age > p.renew || convert.ReportTime(l) != p.lasts {
				t.Errorf("the report is %s old and lasts %s", age, convert.ReportTime(l))
			}
			if got := convert.ReadReport(l).Faults; !maps.Equal(got, want) {
				t.Errorf("reported %v, want %v", got, want)
			}
		}
		down := map[string]world.Fault{"provider": {Kind: world.FaultUplink, Message: "no carrier"}}
		r.Report(v1alpha1.AnnotationFaults, `{"provider":{"kind":"uplink","message":"no carrier"}}`, true)
		expect(down, urgent())
		asked := []byte(`{"metadata":{"annotations":{"slb.k8s.ovn.org/address-probes":"[]","slb.k8s.ovn.org/conflicts":"{}"}}}`)
		if _, err := leases.Patch(t.Context(), "n1", types.MergePatchType, asked, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(80 * time.Second)
		expect(down, urgent())
		r.Report(v1alpha1.AnnotationFaults, "{}", false)
		expect(nil, quietPace())
		writes := len(kube.Actions())
		<-time.After(time.Hour)
		if expect(nil, quietPace()); len(kube.Actions()) > writes+1+12 {
			t.Errorf("a healthy node costs too many requests: %v", kube.Actions()[writes:])
		}
		l, _ := leases.Get(t.Context(), "n1", metav1.GetOptions{})
		if owners := l.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Node" || owners[0].UID != "uid" {
			t.Errorf("owners %v, want the Node", owners)
		}
		if l.Annotations[v1alpha1.AnnotationAddressProbes] != "[]" ||
			l.Annotations[v1alpha1.AnnotationConflicts] != "{}" {
			t.Errorf("annotations %v", l.Annotations)
		}
	})
}

// The agent of a Node that was deleted does not write the Lease again, which went with the Node.
func TestNoLeaseWithoutItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		r, err := New(leases, kube.CoreV1().Nodes(), "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		go r.Run(t.Context())
		r.Report(v1alpha1.AnnotationFaults, "{}", false)
		synctest.Wait()
		if list, err := leases.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
			t.Errorf("Leases %v, %v; want none", list.Items, err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		if _, err := kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(maxBackoff)
		synctest.Wait()
		if _, err := leases.Get(t.Context(), "n1", metav1.GetOptions{}); err != nil {
			t.Errorf("the Node is there: %v", err)
		}
	})
}

// A module that the process no longer runs must not seem to report: the other modules renew the Lease.
func TestClearedAnnotationsAreRemoved(t *testing.T) {
	for name, before := range map[string]map[string]string{
		"no Lease": nil,
		"a predecessor's Lease": {v1alpha1.AnnotationZone: "{}",
			v1alpha1.AnnotationFaults:        `{"*":{"kind":"uplink","message":"gone"}}`,
			v1alpha1.AnnotationAddressProbes: "[]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			kube := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}})
			leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
			want := map[string]string{v1alpha1.AnnotationFaults: "{}"}
			if before != nil {
				l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: before}}
				if _, err := leases.Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				want[v1alpha1.AnnotationAddressProbes] = "[]"
			}
			r, err := New(leases, kube.CoreV1().Nodes(), "n1", "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Clear(v1alpha1.AnnotationZone)
			go r.Run(t.Context())
			r.Report(v1alpha1.AnnotationFaults, "{}", false)
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(l.Annotations, want) {
				t.Errorf("%s: annotations %v, want %v", name, l.Annotations, want)
			}
		})
	}
}

// Each write is a revision of the Lease in etcd, and hosts cause reports. Those that are urgent do not wait for them.
func TestWritesOfALeaseAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}})
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		r, err := New(leases, kube.CoreV1().Nodes(), "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		go r.Run(t.Context())
		writes := func() int { return int(testutil.ToFloat64(r.writes.WithLabelValues("ok"))) }
		expect := func(annotation, want string) {
			t.Helper()
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Annotations[annotation]; got != want {
				t.Errorf("%s: %s, want %s", annotation, got, want)
			}
		}
		const last = 1000
		for i := range last {
			r.Report(v1alpha1.AnnotationConflicts, strconv.Itoa(i), true)
			<-time.After(10 * time.Millisecond)
		}
		if n := writes(); n > 20 || n < 10 {
			t.Errorf("%d writes of 1,000 reports in 10 s, want 10 and one per second", n)
		}
		<-time.After(writeInterval / 2) // The last of these reports is written, and the next one waits.
		synctest.Wait()
		n := writes()
		r.Report(v1alpha1.AnnotationConflicts, strconv.Itoa(last), true)
		r.ReportAtOnce(v1alpha1.AnnotationFaults, "down", true)
		expect(v1alpha1.AnnotationFaults, "down")
		expect(v1alpha1.AnnotationConflicts, strconv.Itoa(last))
		if err := leases.Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Renew()
		expect(v1alpha1.AnnotationFaults, "down")
		<-time.After(time.Second)
		if synctest.Wait(); writes() != n+2 {
			t.Errorf("%d more writes, want those of the fault and of the Lease that was deleted", writes()-n)
		}
		r.Report(v1alpha1.AnnotationConflicts, "{}", false)
		r.Report(v1alpha1.AnnotationProbed, "[]", false)
		<-time.After(time.Second)
		expect(v1alpha1.AnnotationConflicts, "{}")
		expect(v1alpha1.AnnotationProbed, "[]")
	})
}

// Conflicts that do not fit into the Lease, because a host answers for many addresses, hide no fault.
func TestFaultsAreWrittenAlthoughConflictsDoNotFit(t *testing.T) {
	const limit = 256 << 10 // as of k8s.io/apimachinery/pkg/api/validation
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid"}})
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		var room atomic.Int64 // of all annotations but those that are dispensable
		var refusal atomic.Pointer[apierrors.StatusError]
		refusal.Store(apierrors.NewInvalid(coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind(), "n1",
			field.ErrorList{field.TooLong(field.NewPath("metadata", "annotations"), "", limit)}))
		kube.PrependReactor("patch", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			size := limit - int(room.Load())
			var patch struct {
				Metadata struct{ Annotations map[string]*string }
			}
			if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
				t.Error(err)
			}
			// The client is locked meanwhile.
			l, err := kube.Tracker().Get(a.GetResource(), a.GetNamespace(), "n1")
			if err != nil {
				return false, nil, nil // it is created
			}
			after := maps.Clone(l.(*coordinationv1.Lease).Annotations)
			for name, text := range patch.Metadata.Annotations {
				if delete(after, name); text != nil {
					after[name] = *text
				}
			}
			for _, text := range after {
				size += len(text)
			}
			if size <= limit {
				return false, nil, nil
			}
			return true, nil, refusal.Load()
		})
		r, err := New(leases, kube.CoreV1().Nodes(), "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Dispense(v1alpha1.AnnotationConflicts)
		go r.Run(t.Context())
		expect := func(when, faults string, conflicts int) {
			t.Helper()
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Annotations; got[v1alpha1.AnnotationFaults] != faults ||
				len(got[v1alpha1.AnnotationConflicts]) != conflicts {
				t.Errorf("%s: faults %s, %d bytes of conflicts; want %s, %d", when, got[v1alpha1.AnnotationFaults],
					len(got[v1alpha1.AnnotationConflicts]), faults, conflicts)
			}
		}
		room.Store(1000)
		r.Report(v1alpha1.AnnotationConflicts, strings.Repeat("x", 900), true)
		r.Report(v1alpha1.AnnotationFaults, "{}", false)
		expect("all fits", "{}", 900)
		down := `{"*":{"kind":"uplink","message":"gone"}}`
		r.Report(v1alpha1.AnnotationConflicts, strings.Repeat("x", 2000), true)
		r.Report(v1alpha1.AnnotationFaults, down, true)
		expect("more conflicts than fit", down, 900)
		room.Store(100)
		r.Report(v1alpha1.AnnotationFaults, "{}", false)
		expect("those of before do not fit, either", "{}", 0)
		room.Store(limit)
		<-time.After(urgent().renew)
		expect("all fits again", "{}", 2000)
		room.Store(100)
		refusal.Store(&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError,
			Message: "etcdserver: request is too large"}})
		r.Report(v1alpha1.AnnotationFaults, down, true)
		expect("etcd stores no larger object", down, 0)
	})
}
