// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// This file has helpers that read what users see: Events, addresses and conditions.

// addresses waits until a Service has addresses and returns them. It checks that their ipMode is VIP.
func (c *cluster) addresses(t *testing.T, name string) []string {
	t.Helper()
	var s *corev1.Service
	eventually(t, name+" has an address", func() bool {
		s = c.get(t, name)
		return len(s.Status.LoadBalancer.Ingress) > 0
	})
	var out []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode != corev1.LoadBalancerIPModeVIP {
			t.Errorf("%s: ipMode of %s: %v, want VIP", name, i.IP, i.IPMode)
		}
		out = append(out, i.IP)
	}
	return out
}

// condition waits until a condition has a reason, and returns the condition.
func (c *cluster) condition(t *testing.T, name, kind, reason string) metav1.Condition {
	t.Helper()
	var last *metav1.Condition
	await.NoError(t, name+": condition "+kind+" has reason "+reason, func(context.Context) error {
		last = meta.FindStatusCondition(c.get(t, name).Status.Conditions, kind)
		if last == nil || last.Reason != reason {
			return fmt.Errorf("it is %+v", last)
		}
		return nil
	})
	return *last
}
