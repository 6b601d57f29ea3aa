// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Events tells transitions of Services. The zero value tells nobody.
type Events struct {
	Recorder record.EventRecorder
}

// transition is an Event for a condition that became what it was not.
type transition struct {
	condition string
	to        metav1.ConditionStatus
	kind      string
	reason    string
}

func transitions() []transition {
	return []transition{
		{v1alpha1.ConditionAllocated, metav1.ConditionTrue, corev1.EventTypeNormal, v1alpha1.EventIPAllocated},
		{v1alpha1.ConditionAllocated, metav1.ConditionFalse, corev1.EventTypeWarning, v1alpha1.EventAllocationFailed},
		{v1alpha1.ConditionAnnounced, metav1.ConditionTrue, corev1.EventTypeNormal, v1alpha1.EventAnnounced},
	}
}

// service tells what a status write changed. A Service that waits for another reason
// than before is told once more.
func (e *Events) service(before, after *corev1.Service) {
	if e == nil || e.Recorder == nil {
		return
	}
	about := &corev1.ObjectReference{Kind: "Service", APIVersion: "v1", Namespace: after.Namespace, Name: after.Name, UID: after.UID}
	for _, t := range transitions() {
		was := meta.FindStatusCondition(before.Status.Conditions, t.condition)
		is := meta.FindStatusCondition(after.Status.Conditions, t.condition)
		if is == nil || is.Status != t.to {
			continue
		}
		if was == nil || was.Status != is.Status || (t.to == metav1.ConditionFalse && was.Reason != is.Reason) {
			e.Recorder.Event(about, t.kind, t.reason, is.Message)
		}
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAnnounced)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAnnounced)
	if was != nil && was.Status == metav1.ConditionTrue && is != nil && is.Status == metav1.ConditionFalse {
		e.Recorder.Event(about, corev1.EventTypeWarning, v1alpha1.EventAnnouncementFailed, is.Message)
	}
	if was != nil && is != nil && was.Status == metav1.ConditionTrue && is.Status == metav1.ConditionTrue && was.Message != is.Message {
		e.Recorder.Event(about, corev1.EventTypeNormal, v1alpha1.EventGatewayChanged, is.Message)
	}
	if len(before.Status.LoadBalancer.Ingress) > 0 && len(after.Status.LoadBalancer.Ingress) == 0 {
		e.Recorder.Event(about, corev1.EventTypeNormal, v1alpha1.EventIPReleased, "the address was taken back")
	}
}
