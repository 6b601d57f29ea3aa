// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// failures has the Services whose condition Announced was False before it became Unknown because its state can't be
// observed, with the reason: the Unknown condition does not contain it. The zero value is empty. A Service that is
// deleted meanwhile stays, so the number is bounded.
type failures struct {
	mu      sync.Mutex
	reasons map[types.UID]string
}

// observe records the condition of a Service, before and after it changed, and returns the reason why it was not
// announced before its state became Unknown; empty if it was announced, or if the state is Unknown still.
func (f *failures) observe(service types.UID, was, is *metav1.Condition) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is != nil && isUnobserved(is) {
		if was != nil && was.Status == metav1.ConditionFalse && len(f.reasons) < maxEvents {
			if f.reasons == nil {
				f.reasons = map[types.UID]string{}
			}
			f.reasons[service] = was.Reason
		}
		return ""
	}
	reason := f.reasons[service]
	delete(f.reasons, service)
	return reason
}

// isUnobserved reports whether a condition is Unknown because the state of the Service can't be observed.
func isUnobserved(c *metav1.Condition) bool {
	return c.Status == metav1.ConditionUnknown &&
		slices.Contains([]string{v1alpha1.ReasonDatabaseUnreachable, v1alpha1.ReasonNodeSilent, v1alpha1.ReasonNotRead},
			c.Reason)
}
