// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func leaseOf(t *testing.T, faults map[string]string) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if err := convert.Report(l, faults, 40*time.Second); err != nil {
		t.Fatal(err)
	}
	return l
}

// What a guard reports counts while it shows signs of life, and only its changes wake.
func TestReportsOfGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wakes := counted()
		f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		*wakes = 0
		lost := map[string]string{"provider": "no carrier"}
		expect := func(when string, wantWakes int, want map[string]string) {
			t.Helper()
			synctest.Wait()
			if got := snapshot(f).Nodes[0].Faults; *wakes != wantWakes || !maps.Equal(got, want) {
				t.Errorf("%s: %d wakes, faults %v; want %d and %v", when, *wakes, got, wantWakes, want)
			}
			*wakes = 0
		}
		first := leaseOf(t, lost)
		f.setReport(nil, first)
		expect("reported", 1, lost)
		<-time.After(30 * time.Second)
		f.setReport(first, leaseOf(t, lost))
		expect("renewed", 0, lost)
		<-time.After(39 * time.Second)
		expect("39 s later", 0, lost)
		<-time.After(2 * time.Second)
		expect("silent", 1, nil)
		f.setReport(first, leaseOf(t, lost))
		expect("back", 1, lost)
		f.setReport(first, nil)
		expect("gone", 1, nil)
		<-time.After(time.Minute)
		expect("and long gone", 0, nil)

		broken := leaseOf(t, lost)
		broken.Annotations[v1alpha1.AnnotationFaults] = `["provider"]`
		f.setReport(nil, broken)
		expect("unreadable", 0, nil)
	})
}
