// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Verdicts are conditions by their type.
type Verdicts map[string]Verdict

// set writes all verdicts, in order of their types, and tells whether that changed anything.
func (v Verdicts) set(conditions *[]metav1.Condition, generation int64, now time.Time) bool {
	changed := false
	for _, kind := range sortedKeys(v) {
		changed = meta.SetStatusCondition(conditions, v[kind].condition(kind, generation, now)) || changed
	}
	return changed
}

// Accepted is the verdict on an object with these problems: those that make it useless,
// and those that it works beside.
func Accepted(problems, remarks []string) Verdict {
	switch {
	case len(problems) > 0:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalid, strings.Join(problems, "; ")}
	case len(remarks) > 0:
		return Verdict{metav1.ConditionTrue, v1alpha1.ReasonPartlyUsable, strings.Join(remarks, "; ")}
	}
	return Verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the object is valid"}
}

// PoolStatus returns what the status of a pool shall say.
func PoolStatus(problems []string, use ipam.PoolUse) Merge[*v1alpha1.IPAddressPool] {
	return func(have *v1alpha1.IPAddressPool, now time.Time) (*v1alpha1.IPAddressPool, bool) {
		status := v1alpha1.IPAddressPoolStatus{
			AssignedIPv4: use.Assigned4, AssignedIPv6: use.Assigned6,
			AvailableIPv4: use.Available4, AvailableIPv6: use.Available6,
			Conditions: slices.Clone(have.Status.Conditions),
		}
		remarks := slices.Concat(use.Problems, convert.PoolLimits(have))
		changed := Verdicts{
			v1alpha1.ConditionAccepted: Accepted(problems, remarks),
			v1alpha1.ConditionReady:    poolReady(have.Spec.Disabled, problems, use),
		}.set(&status.Conditions, have.Generation, now)
		was := have.Status
		if !changed && was.AssignedIPv4 == use.Assigned4 && was.AssignedIPv6 == use.Assigned6 &&
			was.AvailableIPv4 == use.Available4 && was.AvailableIPv6 == use.Available6 {
			return nil, false
		}
		out := have.DeepCopy()
		out.Status = status
		return out, true
	}
}

func poolReady(disabled bool, problems []string, use ipam.PoolUse) Verdict {
	switch {
	case len(problems) > 0:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalid, "the pool gives no address; see " + v1alpha1.ConditionAccepted}
	case disabled:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonDisabled, "spec.disabled: true: the pool gives no new address"}
	case use.Available4 == 0 && use.Available6 == 0:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonExhausted,
			fmt.Sprintf("all addresses are in use: %d IPv4, %d IPv6", use.Assigned4, use.Assigned6)}
	}
	return Verdict{metav1.ConditionTrue, v1alpha1.ReasonReady, "the pool has addresses to give"}
}

// DomainStatus returns what the status of a domain shall say; its conditions are those of
// verdicts, and one that has none stands. Who carries the shards, and so who is left out,
// depends on OVN: while that is not known, what the status says of nodes stands.
func DomainStatus(status v1alpha1.L2DomainStatus, verdicts Verdicts, known bool) Merge[*v1alpha1.L2Domain] {
	return func(have *v1alpha1.L2Domain, now time.Time) (*v1alpha1.L2Domain, bool) {
		next := status
		if !known {
			next = have.Status
		}
		next.Conditions = slices.Clone(have.Status.Conditions)
		changed := verdicts.set(&next.Conditions, have.Generation, now)
		was := have.Status
		if !changed && was.EligibleNodes == next.EligibleNodes && slices.Equal(was.LeftOutNodes, next.LeftOutNodes) &&
			slices.EqualFunc(was.Shards, next.Shards, equalShards) {
			return nil, false
		}
		out := have.DeepCopy()
		out.Status = next
		return out, true
	}
}

func equalShards(a, b v1alpha1.ShardStatus) bool {
	return a.Index == b.Index && a.Active == b.Active && a.Addresses == b.Addresses && slices.Equal(a.Gateways, b.Gateways)
}
