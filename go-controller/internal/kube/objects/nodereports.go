// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
)

// LastReport returns when a node showed last that its reports are current; nil if that is not known. It renewed its
// Lease, which a node without a guard and an agent does not have, or changed its BGPNodeStatus, whose condition Ready
// the leader sets to Unknown.
func (o *Objects) LastReport(node string) *metav1.Time {
	var times []*metav1.Time
	if l := Named(o.Leases, node); l != nil && l.Spec.RenewTime != nil {
		times = append(times, &metav1.Time{Time: l.Spec.RenewTime.Time})
	}
	if n := Named(o.NodeStatuses, node); n != nil {
		times = append(times, n.Status.StopTime)
		for _, c := range n.Status.Conditions {
			if c.Status != metav1.ConditionUnknown {
				times = append(times, &c.LastTransitionTime)
			}
		}
		for _, s := range n.Status.Sessions {
			times = append(times, s.Since, s.LastErrorTime)
		}
	}
	var last *metav1.Time
	for _, t := range times {
		if !t.IsZero() && (last == nil || last.Before(t)) {
			last = t
		}
	}
	return last
}

// ReportExpired returns that the last report of a node has expired because its daemons do not renew its Lease. It is
// empty if they do, if the node has no Lease, or if its BGP daemon has reported since.
func (o *Objects) ReportExpired(node string, now time.Time) string {
	l := Named(o.Leases, node)
	if l == nil || !o.Expired(l, now) {
		return ""
	}
	last := o.LastReport(node)
	if o.clock(now).Sub(last.Time) <= convert.ReportTime(l) {
		return ""
	}
	return "the Lease of the node's daemon has expired, and with it the node's last report, of " +
		last.UTC().Format(time.RFC3339)
}
