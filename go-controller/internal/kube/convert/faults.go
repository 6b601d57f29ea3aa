// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// defaultFaultTime is how long a report counts that does not say it.
const defaultFaultTime = 40 * time.Second

// Faults reads what a node's guard reports, by physical network; nil for nothing. A
// report that can't be read is one of nothing: it must not take a gateway out.
func Faults(l *coordinationv1.Lease) map[string]string {
	var faults map[string]string
	if json.Unmarshal([]byte(l.Annotations[v1alpha1.AnnotationFaults]), &faults) != nil {
		return nil
	}
	for network, why := range faults {
		if network == "" || why == "" {
			delete(faults, network)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// FaultTime is how long a report counts after it was renewed.
func FaultTime(l *coordinationv1.Lease) time.Duration {
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return defaultFaultTime
}

// Report writes faults of a node into the Lease that its guard keeps, as Faults reads them.
func Report(l *coordinationv1.Lease, faults map[string]string, lasts time.Duration) error {
	text, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[v1alpha1.AnnotationFaults] = string(text)
	seconds := int32(lasts / time.Second)
	l.Spec.LeaseDurationSeconds = &seconds
	return nil
}

// WithFaults returns a node as it is with the faults that its guard reports.
func WithFaults(n *world.Node, faults map[string]string) *world.Node {
	if len(faults) == 0 {
		return n
	}
	out := *n
	out.Faults = faults
	return &out
}
