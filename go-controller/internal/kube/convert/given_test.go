// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// An address comes from the pool that follows it, or from the one that follows the last address if none else does.
func TestFromPoolIsThePoolOfTheCondition(t *testing.T) {
	for message, want := range map[string]string{
		"10.60.0.1, fd00:60::1 from pool lan":                          "[10.60.0.1 fd00:60::1]",
		"10.60.0.1 from pool lan, fd00:60::1 from pool six":            "[10.60.0.1]",
		"10.60.0.1 from pool six, fd00:60::1; it is not from pool lan": "[]",
		"10.60.0.1 from pool lan; address 10.60.0.1 is in no pool":     "[10.60.0.1]",
		"10.60.0.1, fd00:60::1":                                        "[]",
	} {
		s := &corev1.Service{}
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue,
			Message: message}}
		if got := fmt.Sprint(fromPool(s, "lan")); got != want {
			t.Errorf("of %q: %s, want %s", message, got, want)
		}
	}
}

// All addresses that the condition Allocated lists are ours, whether a pool follows each of them or the last one.
func TestGivenAddressesAreThoseOfTheCondition(t *testing.T) {
	for message, want := range map[string]string{
		"10.60.0.1, fd00:60::1 from pool lan":                              "[10.60.0.1 fd00:60::1]",
		"10.60.0.1 from pool four, fd00:60::1 from pool six":               "[10.60.0.1 fd00:60::1]",
		"10.60.0.1, fd00:60::1 from pool six":                              "[10.60.0.1 fd00:60::1]",
		"10.60.0.1 from pool four, fd00:60::1; address fd00:60::1 is gone": "[10.60.0.1 fd00:60::1]",
		"10.60.0.1; address 10.60.0.1 is in no pool, 10.60.0.2":            "[10.60.0.1]",
		"10.60.0.1 from pool four; 10.60.0.2, 10.60.0.3":                   "[10.60.0.1]",
		"10.60.0.1 from 10.60.0.2, 10.60.0.3":                              "[10.60.0.1]",
		"10.60.0.1 from pool a b, 10.60.0.3":                               "[10.60.0.1]",
		"10.60.0.1 from pool":                                              "[10.60.0.1]",
		"::ffff:10.60.0.1":                                                 "[10.60.0.1]",
		"no pool":                                                          "[]",
		"":                                                                 "[]",
	} {
		s := &corev1.Service{}
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue,
			Message: message}}
		if got := fmt.Sprint(Given(s)); got != want {
			t.Errorf("of %q: %s, want %s", message, got, want)
		}
		if s.Status.Conditions[0].Status = metav1.ConditionFalse; len(Given(s)) > 0 {
			t.Errorf("of %q, which is False: %v", message, Given(s))
		}
	}
}
