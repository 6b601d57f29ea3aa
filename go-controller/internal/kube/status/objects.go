// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Merge returns the object with the desired status, and false if it has that status already. It does not change have.
type Merge[T any] func(have T, now time.Time) (T, bool)

// Pool returns a Merge that sets the status of a pool. announced is the verdict on whether its addresses can be
// announced: True, False with the reason, or Unknown. If it is Unknown, a condition that would depend on it is not
// changed. mode is nil if there is nothing to report about the mode.
func Pool(problems []string, use ipam.PoolUsage, announced Verdict,
	mode *Verdict) Merge[*v1alpha1.IPAddressPool] {
	return func(have *v1alpha1.IPAddressPool, now time.Time) (*v1alpha1.IPAddressPool, bool) {
		status := v1alpha1.IPAddressPoolStatus{
			Addresses:    poolColumn(have),
			AssignedIPv4: use.Assigned4, AssignedIPv6: use.Assigned6,
			AvailableIPv4: use.Available4, AvailableIPv6: use.Available6,
			CoolingDownIPv4: use.Cooldown4, CoolingDownIPv6: use.Cooldown6,
			Conditions: slices.Clone(have.Status.Conditions),
		}
		leases := use.Leases[:min(len(use.Leases), v1alpha1.MaxLeases)]
		verdicts := Verdicts{v1alpha1.ConditionAccepted: Accepted(problems, use.Problems)}
		if ready := poolReady(have.Spec.Disabled, problems, use, announced); ready.Status != metav1.ConditionUnknown {
			verdicts[v1alpha1.ConditionReady] = ready
		}
		removed := false
		if mode != nil {
			verdicts[v1alpha1.ConditionModeAccepted] = *mode
		} else {
			removed = meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionModeAccepted)
		}
		changed := verdicts.set(&status.Conditions, have.Generation, now) || removed
		was := have.Status
		if !changed && was.Addresses == status.Addresses &&
			was.AssignedIPv4 == use.Assigned4 && was.AssignedIPv6 == use.Assigned6 &&
			was.AvailableIPv4 == use.Available4 && was.AvailableIPv6 == use.Available6 &&
			was.CoolingDownIPv4 == use.Cooldown4 && was.CoolingDownIPv6 == use.Cooldown6 &&
			slices.EqualFunc(was.Leases, leases, sameLease) {
			return nil, false
		}
		status.Leases = addressLeases(leases)
		out := have.DeepCopy()
		out.Status = status
		return out, true
	}
}

func addressLeases(list []world.Lease) []v1alpha1.AddressLease {
	var out []v1alpha1.AddressLease
	for _, l := range list {
		lease := v1alpha1.AddressLease{Address: l.Addr.String(), Namespace: l.Service.Namespace, Name: l.Service.Name}
		if !l.Released.IsZero() {
			released := metav1.NewTime(l.Released)
			lease.ReleasedAt = &released
		}
		out = append(out, lease)
	}
	return out
}

func sameLease(is v1alpha1.AddressLease, want world.Lease) bool {
	var released time.Time
	if is.ReleasedAt != nil {
		released = is.ReleasedAt.Time
	}
	return is.Name == want.Service.Name && is.Namespace == want.Service.Namespace && released.Equal(want.Released) &&
		is.Address == want.Addr.String()
}

func poolReady(disabled bool, problems []string, use ipam.PoolUsage, announced Verdict) Verdict {
	switch {
	case use.Suspended.Reason != "":
		return Verdict{metav1.ConditionFalse, string(use.Suspended.Reason), use.Suspended.Message}
	case len(problems) > 0:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalid, "the pool is invalid and allocates no addresses; see " +
			v1alpha1.ConditionAccepted}
	case disabled:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonDisabled,
			"spec.disabled is true: the pool allocates no new addresses"}
	case use.ClaimReason != "":
		return Verdict{metav1.ConditionFalse, string(use.ClaimReason), use.ClaimMessage}
	case !use.External && use.Available4 == 0 && use.Available6 == 0:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonExhausted, exhausted(use)}
	case announced.Status != metav1.ConditionTrue || announced.Reason != "":
		return announced
	}
	if use.External {
		return Verdict{metav1.ConditionTrue, v1alpha1.ReasonReady, "the provider of spec.externalPool chooses the addresses"}
	}
	return Verdict{metav1.ConditionTrue, v1alpha1.ReasonReady, "addresses are available"}
}

// exhausted describes why a pool has no available address.
func exhausted(use ipam.PoolUsage) string {
	switch used, cooling := use.Assigned4+use.Assigned6, use.Cooldown4+use.Cooldown6; {
	case use.Capacity4+use.Capacity6 == 0 && used+cooling == 0:
		return "no address is usable: all are excluded (spec.exclude, spec.avoidBuggyIPs), in another pool, or addresses " +
			"of nodes, next hops or networks"
	case used+cooling == 0:
		return "all usable addresses are reserved (spec.reservations)"
	case cooling > 0:
		return fmt.Sprintf("all addresses are in use: %d IPv4, %d IPv6; in cooldown (spec.reuseDelay): %d IPv4, %d IPv6",
			use.Assigned4, use.Assigned6, use.Cooldown4, use.Cooldown6)
	}
	return fmt.Sprintf("all addresses are in use: %d IPv4, %d IPv6", use.Assigned4, use.Assigned6)
}

// Domain returns a Merge that sets the status of a domain. verdicts are its conditions; a condition without a
// verdict is not changed. Which nodes are gateways of shards, and therefore which nodes are excluded, depends on OVN.
// Unless known is set, only the conditions and the column of the subnets are changed.
func Domain(status v1alpha1.L2DomainStatus, verdicts Verdicts, known bool) Merge[*v1alpha1.L2Domain] {
	return func(have *v1alpha1.L2Domain, now time.Time) (*v1alpha1.L2Domain, bool) {
		next := status
		if !known {
			next = have.Status
		}
		next.Conditions, next.Subnets = slices.Clone(have.Status.Conditions), domainColumn(have)
		changed := verdicts.set(&next.Conditions, have.Generation, now)
		was := have.Status
		if !changed && was.Subnets == next.Subnets && was.Mode == next.Mode && was.ModeMessage == next.ModeMessage &&
			was.EligibleNodes == next.EligibleNodes && slices.Equal(was.ExcludedNodes, next.ExcludedNodes) &&
			slices.EqualFunc(was.Shards, next.Shards, equalShards) && equality.Semantic.DeepEqual(was.Move, next.Move) {
			return nil, false
		}
		out := have.DeepCopy()
		out.Status = next
		return out, true
	}
}

func equalShards(a, b v1alpha1.ShardStatus) bool {
	return a.Index == b.Index && a.Active == b.Active && a.Addresses == b.Addresses &&
		(a.Ordinal == nil) == (b.Ordinal == nil) && (a.Ordinal == nil || *a.Ordinal == *b.Ordinal) &&
		slices.Equal(a.Gateways, b.Gateways) &&
		slices.Equal(a.Anchors, b.Anchors)
}
