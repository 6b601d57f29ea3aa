// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"math"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// rank orders pools: by priority, where 0 is the last one, and those that serve every
// Service after all the others.
func (p *pool) rank() int {
	switch {
	case p.Admission == nil:
		return math.MaxInt
	case p.Admission.Priority == 0:
		return math.MaxInt - 1
	}
	return p.Admission.Priority
}

// admits reports whether the pool serves the Service.
func (p *pool) admits(s *world.Service) bool {
	return p.Admission == nil || p.Admission.AdmitsNamespace(s.Key.Namespace) && p.Admission.AdmitsLabels(s.Labels)
}

// shuts says why the pool does not serve the Service, empty if it does.
func (p *pool) shuts(s *world.Service) string {
	switch {
	case p.admits(s):
		return ""
	case !p.Admission.AdmitsNamespace(s.Key.Namespace):
		return fmt.Sprintf("pool %q does not serve namespace %q (spec.serviceAllocation.namespaces, namespaceSelectors)", p.Name, s.Key.Namespace)
	}
	return fmt.Sprintf("pool %q serves no Service with metadata.labels %v (spec.serviceAllocation.serviceSelectors)", p.Name, s.Labels)
}
