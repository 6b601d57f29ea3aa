// SPDX-License-Identifier: Apache-2.0

package nodelease

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The Lease contains the reports, is renewed at their pace, and keeps annotations of other writers.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		r, err := New(leases, "n1", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		go r.Run(t.Context())
		expect := func(want map[string]string, p pace) {
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
		down := map[string]string{"provider": "no carrier"}
		r.Report(v1alpha1.AnnotationFaults, `{"provider":"no carrier"}`, true)
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
		if l.Annotations[v1alpha1.AnnotationAddressProbes] != "[]" ||
			l.Annotations[v1alpha1.AnnotationConflicts] != "{}" {
			t.Errorf("annotations %v", l.Annotations)
		}
	})
}
