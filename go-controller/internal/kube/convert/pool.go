// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Pool reads a pool. Of a pool with problems the ranges that can be read are kept, so that
// the Services that have its addresses go on to be recognised.
func Pool(p *v1alpha1.IPAddressPool) *world.Pool {
	out := &world.Pool{
		Name:          p.Name,
		Created:       p.CreationTimestamp.Time,
		Ranges:        ranges(p.Spec.Addresses),
		Exclude:       ranges(p.Spec.Exclude),
		AutoAssign:    p.Spec.AutoAssign == nil || *p.Spec.AutoAssign,
		AvoidBuggyIPs: p.Spec.AvoidBuggyIPs,
		Disabled:      p.Spec.Disabled,
		Problems:      problems(p.Validate()),
	}
	// Reserved addresses must not go to others, and nobody is recognised yet as the one
	// that they wait for.
	for _, r := range p.Spec.Reservations {
		for _, text := range r.Addresses {
			if a, err := text.Parse(); err == nil {
				out.Exclude = append(out.Exclude, netipx.IPRangeFrom(a, a))
			}
		}
	}
	if p.Spec.ServiceAllocation != nil {
		// Without it the pool would serve those whom the administrator shut out.
		out.Problems = append(out.Problems, "spec.serviceAllocation is not served by this release, so the pool gives no "+
			"new address; remove the field to let every Service draw from the pool")
	}
	return out
}

func ranges(texts []v1alpha1.AddressRange) []netipx.IPRange {
	var out []netipx.IPRange
	for _, text := range texts {
		if r, err := text.Parse(); err == nil {
			out = append(out, r)
		}
	}
	return out
}

// PoolLimits names the fields of a pool that are in use and not served by this release.
// Those that would do harm that way are Problems of the pool instead.
func PoolLimits(p *v1alpha1.IPAddressPool) []string {
	var limits []string
	tell := func(used bool, limit string) {
		if used {
			limits = append(limits, limit)
		}
	}
	tell(p.Spec.QuotaPerNamespace != nil, "spec.quotaPerNamespace has no effect in this release")
	tell(p.Spec.ReuseDelay != nil && p.Spec.ReuseDelay.Duration != 0, "spec.reuseDelay has no effect in this release")
	tell(len(p.Spec.Reservations) > 0, "spec.reservations: this release gives the addresses to nobody")
	tell(p.Spec.ExternalIPs, "spec.externalIPs has no effect in this release")
	return limits
}

func problems(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}
