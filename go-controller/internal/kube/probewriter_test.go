// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Probe requests are written to the Lease of the guard and removed again, even if the API server fails at first.
func TestProbeRequestsReachTheirGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		kube := fake.NewClientset()
		leases := kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
		lease := func() *coordinationv1.Lease {
			synctest.Wait()
			l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		first := leaseOf(t, convert.Report{})
		if _, err := leases.Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.setReport(nil, lease())
		failures := 3
		kube.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("no leader")
		})
		a := NewProbeWriter(kube, f)
		go a.Run(t.Context())
		requests := []world.ProbeRequest{{Network: "provider", VLAN: 7,
			Addresses: []netip.Addr{netip.MustParseAddr("fd00:50::7")}}}
		a.Set(map[string][]world.ProbeRequest{"n1": requests, "gone": requests})
		<-time.After(30 * time.Second)
		l := lease()
		if got, want := l.Annotations[v1alpha1.AnnotationAddressProbes],
			`[{"network":"provider","vlan":7,"addresses":["fd00:50::7"]}]`; got != want {
			t.Errorf("requests %q, want %q", got, want)
		}
		if got := convert.ProbeRequests(l); len(got) != 1 || got[0].Addresses[0] != requests[0].Addresses[0] {
			t.Errorf("the guard reads %v", got)
		}
		if l.Annotations[v1alpha1.AnnotationFaults] != "{}" {
			t.Errorf("annotations %v", l.Annotations)
		}
		f.setReport(first, l)
		writes := len(kube.Actions())
		a.Set(map[string][]world.ProbeRequest{"n1": requests})
		synctest.Wait()
		if len(kube.Actions()) != writes {
			t.Errorf("requested twice: %v", kube.Actions()[writes:])
		}
		a.Set(nil)
		if text, asked := lease().Annotations[v1alpha1.AnnotationAddressProbes]; asked {
			t.Errorf("requests are still %q", text)
		}
	})
}

// A guard whose Lease can't be written, for instance because its node has filled it, costs no request and no line in
// the log for each pass.
func TestProbeRequestsThatCannotBeWrittenWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		kube := fake.NewClientset()
		kube.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("metadata.annotations: Too long")
		})
		f.setReport(nil, leaseOf(t, convert.Report{}))
		a := NewProbeWriter(kube, f)
		go a.Run(t.Context())
		requests := []world.ProbeRequest{{Network: "provider", Addresses: []netip.Addr{netip.MustParseAddr("10.50.0.7")}}}
		for range 100 {
			a.Set(map[string][]world.ProbeRequest{"n1": requests})
			synctest.Wait()
		}
		if n := len(kube.Actions()); n != 1 {
			t.Errorf("%d requests in 100 passes, want 1", n)
		}
	})
}
