// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// untranslated returns the verdict on a plan that has been in the northbound database for ProgramWait, and that
// ovn-northd has not translated. With OpenShift SDN nodes have not confirmed it.
func (v *Builder) untranslated() *status.Verdict {
	if v.World.Cluster.OpenShiftSDN {
		return &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonProgramming,
			Message: fmt.Sprintf("a node has not confirmed for %v that it has an address of the Service", world.ProgramWait)}
	}
	return &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotTranslated,
		Message: fmt.Sprintf("ovn-northd has not translated the rows of the Service for %v; OVN keeps what it had",
			world.ProgramWait)}
}

// postponed returns the verdict on a plan that waits because of what its namespace has changed before.
func postponed(namespace string) *status.Verdict {
	return &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonProgramming,
		Message: fmt.Sprintf("the latest change of the Service waits: the ServicePlans of namespace %s change by more than "+
			"is written to all nodes at once", namespace)}
}

// awaitsTranslation reports whether the status waits for ovn-northd, which usually takes a moment.
func (v *Builder) awaitsTranslation(got loop.Result) bool {
	return !got.Pending.IsZero() && v.World.Now.Before(got.Pending.Add(world.ProgramWait))
}

// PendingUntil returns when the first status of a Service no longer waits for ovn-northd, or the zero time.
func (v *Builder) PendingUntil() time.Time {
	var first time.Time
	for _, got := range v.Programmed {
		if v.awaitsTranslation(got) {
			first = world.Earliest(first, got.Pending.Add(world.ProgramWait))
		}
	}
	return first
}
