// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// announced returns a verdict that names the first broken link between a client and the Service. If the addresses of
// the other family are announced all the same, it says so, without naming them: a message is about the addresses that
// it names. It returns nil while the dataplane has not reported.
func (v *Builder) announced(s *world.Service) *status.Verdict {
	placements, o := v.Placements.Services[s.Key], v.Allocation.Services[s.Key]
	if len(placements) == 0 || len(o.HeldExternal) == 0 && v.withheld(s, o) != "" {
		return notAnnounced(v1alpha1.ReasonNotAllocated, "the Service has no address; see %s", v1alpha1.ConditionAllocated)
	}
	advertised := v.advertisementsOf(s)
	verdict := v.announcement(s, placements, advertised)
	if verdict == nil || verdict.Status == metav1.ConditionTrue {
		return verdict
	}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		of, states := ofFamily(f, placements, advertised)
		if len(of) == 0 || len(of) == len(placements) || v.Plans[s.Key] != nil && familyWithoutBackend(v.Plans[s.Key]) == f {
			continue
		}
		if other := v.announcement(s, of, states); other != nil && other.Status == metav1.ConditionTrue {
			partly := *verdict
			partly.Message += fmt.Sprintf("; announced over %s", f)
			return &partly
		}
	}
	return verdict
}

// ofFamily returns the placements of one family, with their advertisements.
func ofFamily(f world.Family, placements []place.Placement, advertised []advertisementState) (of []place.Placement,
	states []advertisementState) {
	for i, p := range placements {
		if world.FamilyOf(p.Addr) != f {
			continue
		}
		of = append(of, p)
		if advertised != nil {
			states = append(states, advertised[i])
		}
	}
	return of, states
}

// familyWithoutBackend returns a family of the addresses in OVN of which no listener has a backend; 0 if there is none.
func familyWithoutBackend(p *plan.Service) world.Family {
	has := map[world.Family]bool{}
	for i := range p.Listeners {
		if len(p.Listeners[i].Backends) > 0 {
			has[world.FamilyOf(p.Listeners[i].VIP)] = true
		}
	}
	for _, vip := range p.VIPs {
		if f := world.FamilyOf(vip.Addr); !has[f] {
			return f
		}
	}
	return 0
}
