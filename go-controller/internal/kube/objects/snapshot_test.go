// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A report expires by the clock of the cluster: that of the user's machine may be wrong.
func TestReportsExpireByTheClockOfTheLeader(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	lease := func(name string, renewed time.Time) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{v1alpha1.AnnotationZone: `{}`}}}
		l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &metav1.MicroTime{Time: renewed}, new(int32(40))
		return l
	}
	for name, c := range map[string]struct {
		renewed, leader time.Duration // before now
		silent          bool
	}{
		"clocks agree":                       {renewed: 39 * time.Second, leader: time.Second},
		"clocks agree, silent":               {renewed: 42 * time.Second, leader: time.Second, silent: true},
		"35 s fast":                          {renewed: 45 * time.Second, leader: 35 * time.Second},
		"35 s fast, silent":                  {renewed: 80 * time.Second, leader: 35 * time.Second, silent: true},
		"30 s slow":                          {renewed: 5 * time.Second, leader: -30 * time.Second},
		"30 s slow, silent":                  {renewed: 15 * time.Second, leader: -30 * time.Second, silent: true},
		"no controller works":                {renewed: 70 * time.Second, leader: 65 * time.Second, silent: true},
		"a leader that is far in the future": {renewed: 30 * time.Second, leader: -time.Hour},
	} {
		o := &Objects{Leases: []*coordinationv1.Lease{lease("n1", now.Add(-c.renewed))},
			Leader: lease(LeaderName, now.Add(-c.leader))}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		if got := o.Node(n, now).Agent.Silent; got != c.silent {
			t.Errorf("%s: the agent is silent: %t", name, got)
		}
		if got := o.ReportExpired("n1", now) != ""; got != c.silent {
			t.Errorf("%s: the report has expired: %t", name, got)
		}
	}
}
