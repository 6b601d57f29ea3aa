// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// suspended says why nothing new is given at all, empty if it is. Two who give addresses
// to one Service would overwrite each other for ever.
func suspended(c *world.Cluster) string {
	if len(c.AutoAssignCIDRs) == 0 {
		return ""
	}
	return fmt.Sprintf("OpenShift gives addresses itself (config.openshift.io Network \"cluster\", spec.externalIP.autoAssignCIDRs: %q); "+
		"addresses of pools are given once that field is empty", c.AutoAssignCIDRs)
}

// lacks reports whether there is anything that a Service with these addresses should be
// given.
func (d *desk) lacks(s *world.Service, has perFamily) bool {
	for _, f := range families(s) {
		if a := *has.of(f); !a.IsValid() || d.leaves(s, a) {
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
