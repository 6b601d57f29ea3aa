// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A report is as old as the last renewal of the node's Lease, or as what it contains if that is newer.
func TestAgeOfReports(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(at(5).Time))}}
	sessions := []v1alpha1.BGPSession{{Since: new(at(1)), LastErrorTime: new(at(2))}}
	ready := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: at(3)}}
	marked := []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, LastTransitionTime: at(9)},
	}
	type status = v1alpha1.BGPNodeStatusStatus
	for name, c := range map[string]struct {
		leases []*coordinationv1.Lease
		status status
		want   *metav1.Time
	}{
		"nothing is known":    {},
		"a session":           {status: status{Sessions: sessions}, want: new(at(2))},
		"a condition":         {status: status{Conditions: ready}, want: new(at(3))},
		"the leader's mark":   {status: status{Conditions: marked}},
		"a renewed Lease":     {leases: []*coordinationv1.Lease{lease}, want: new(at(5))},
		"the end of a daemon": {[]*coordinationv1.Lease{lease}, status{StopTime: new(at(7))}, new(at(7))},
	} {
		n := &v1alpha1.BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: c.status}
		cluster := objects.Objects{Leases: c.leases, NodeStatuses: []*v1alpha1.BGPNodeStatus{n}}
		if got := cluster.LastReport(n.Name); !got.Equal(c.want) {
			t.Errorf("%s: reported at %v, want %v", name, got, c.want)
		}
	}
}
