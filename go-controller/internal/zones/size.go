// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxSize is the maximum size of a ServicePlan in bytes. etcd takes requests of 1.5 MiB (--max-request-bytes), of which
// the rest is left for the metadata.
const maxSize = 1_500_000

// Fit is Encode for a ServicePlan that the API server can store. A plan that would be too large is published without
// its draining backends, then with one slot for each of the others: connections break, but new ones reach the right
// backends. If that is too large as well, it has no listeners, and Fit returns an error, which names the size.
func Fit(p *plan.Service, before *v1alpha1.ServicePlanSpec) (v1alpha1.ServicePlanSpec, error) {
	spec := Encode(p, before)
	if sizeOf(&spec) <= maxSize {
		return spec, nil
	}
	for i := range spec.Listeners {
		spec.Listeners[i].Draining = nil
	}
	if sizeOf(&spec) <= maxSize {
		return spec, nil
	}
	spec = Encode(p, nil)
	for i := range spec.Listeners {
		spec.Listeners[i].Draining = nil
	}
	size := sizeOf(&spec)
	if size <= maxSize {
		return spec, nil
	}
	spec.Listeners = nil
	return spec, fmt.Errorf("the ServicePlan has %d bytes, and the API server stores at most %d: the Service is not "+
		"served until it has fewer ports or endpoints", size, maxSize)
}

// sizeOf returns how many bytes etcd stores for a ServicePlan, without its metadata, but with what managedFields has of
// each address. It is a few bytes too large, never too small, because all texts are names and addresses.
func sizeOf(s *v1alpha1.ServicePlanSpec) int {
	size := 240 + len(s.Namespace) + len(s.Name) + len(s.SessionAffinity)
	for i := range s.VIPs {
		size += 120 + 2*len(s.VIPs[i].Address) + len(s.VIPs[i].L2Domain)
		if s.VIPs[i].EgressMAC != "" {
			size += 35 + len(s.VIPs[i].EgressMAC)
		}
	}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		size += 42 + len(l.Address) + len(l.Protocol)
		for _, backends := range [][]v1alpha1.PlannedBackend{l.Backends, l.Draining} {
			if len(backends) > 0 {
				size += 14
			}
			for j := range backends {
				size += 29 + len(backends[j].Address) + len(backends[j].NodeName)
				if backends[j].HostNetwork {
					size += 19
				}
			}
		}
	}
	for i := range s.SourceRanges {
		size += 40
		for _, r := range s.SourceRanges[i].CIDRs {
			size += 3 + len(r)
		}
	}
	return size
}
