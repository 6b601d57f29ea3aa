// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Suspension is why no pool allocates new addresses. The zero value means that pools do.
type Suspension struct {
	Reason  Reason
	Message string
}

// suspended returns why no new addresses are allocated at all. Two controllers that allocate addresses to one Service
// would overwrite each other indefinitely.
func suspended(c *world.Cluster) Suspension {
	switch {
	case c.ModeSetting.Mode == world.Disabled:
		return Suspension{ReasonDisabledByMode, c.ModeSetting.Off("service load balancers are")}
	case len(c.AutoAssignCIDRs) > 0:
		return Suspension{ReasonOpenShiftAssigns,
			fmt.Sprintf("OpenShift allocates addresses itself (config.openshift.io Network \"cluster\", "+
				"spec.externalIP.autoAssignCIDRs: %q); pools allocate addresses once that field is empty", c.AutoAssignCIDRs)}
	}
	return Suspension{}
}

// releasesAddrs reports whether a Service gives up what we allocated to it. Addresses that others wrote into its status
// are not removed.
func releasesAddrs(c *world.Cluster, s *world.Service, held []netip.Addr) bool {
	return c.ModeSetting.Mode == world.Disabled && c.ModeSetting.Release && (len(s.Given) > 0 || len(held) > 0)
}

// needsAddress reports whether a Service with these addresses should get any others.
func (al *allocator) needsAddress(s *world.Service, has perFamily) bool {
	for _, f := range families(s) {
		if a := *has.of(f); !a.IsValid() || al.requestsOtherPool(s, a) {
			return true
		}
	}
	for _, a := range s.Requested {
		if a != *has.of(world.FamilyOf(a)) {
			return true
		}
	}
	return false
}
