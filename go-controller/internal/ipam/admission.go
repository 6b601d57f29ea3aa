// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"math"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// priority is the sort key of a pool: its priority, where 0 sorts last. Pools without an admission rule, which serve
// every Service, sort after all others.
func (p *pool) priority() int {
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

// admissionError returns why the pool does not serve the Service, or an empty string if it does.
func (p *pool) admissionError(s *world.Service) string {
	switch {
	case p.admits(s):
		return ""
	case !p.Admission.AdmitsNamespace(s.Key.Namespace):
		return fmt.Sprintf("pool %q does not serve namespace %q (spec.serviceAllocation.namespaces, namespaceSelectors)",
			p.Name, s.Key.Namespace)
	}
	return fmt.Sprintf("pool %q serves no Service with metadata.labels %v (spec.serviceAllocation.serviceSelectors)",
		p.Name, s.Labels)
}
