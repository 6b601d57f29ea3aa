// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// excessVerdict returns the verdict for a Service that exceeds a limit. Its message has only numbers that change with
// the Service itself or with flags: otherwise each change of one Service would rewrite the statuses of all that exceed
// the same limit.
func excessVerdict(p *plan.Service, limits world.Limits) *status.Verdict {
	const unserved = ", so OVN does not announce it"
	demand := p.Excess.Demand
	switch p.Excess.Limit {
	case plan.RangesOfService:
		if demand.ListedRanges > world.MaxListedRanges {
			return notAnnounced(v1alpha1.ReasonTooManySourceRanges,
				"spec.loadBalancerSourceRanges: %d ranges are more than the "+
					"limit of %d"+unserved, demand.ListedRanges, world.MaxListedRanges)
		}
		return notAnnounced(v1alpha1.ReasonTooManySourceRanges,
			"spec.loadBalancerSourceRanges: %d ranges, after adjacent and "+
				"overlapping ones were merged, are more than the limit of %d"+unserved, demand.SourceRanges, plan.MaxSourceRanges)
	case plan.AddressesOfService:
		return notAnnounced(v1alpha1.ReasonTooManyBackends,
			"the Service has %d addresses, spec.externalIPs included and counted for "+
				"each protocol, more than the limit of %d"+unserved, demand.Addresses, plan.MaxAddresses)
	case plan.SlicePortsOfService:
		return notAnnounced(v1alpha1.ReasonTooManyBackends,
			"the EndpointSlices of the Service have %d ports, counted for each "+
				"slice, more than the limit of %d"+unserved, demand.SlicePorts, plan.MaxSlicePorts)
	case plan.BackendsOfNamespace:
		return notAnnounced(v1alpha1.ReasonTooManyBackends,
			"the %s of the Service do not fit into the limit of namespace %q, %d "+
				"(--max-namespace-backends), in which older Services come first"+unserved, needs(demand), p.Key.Namespace,
			limits.NamespaceBackends)
	case plan.BackendsOfCluster:
		return notAnnounced(v1alpha1.ReasonTooManyBackends,
			"the %s of the Service do not fit into the share of namespace %q: all "+
				"namespaces together need more than the limit of %d, and older Services come first"+unserved, needs(demand),
			p.Key.Namespace, limits.Backends)
	case plan.BackendsOfService, plan.NoLimit:
	}
	return notAnnounced(v1alpha1.ReasonTooManyBackends,
		"the Service has %d backends (addresses x ports x endpoints, ready or "+
			"not), more than the limit of %d (--max-service-backends, at most 8000 with interconnect)"+unserved, demand.Backends,
		limits.ServiceBackends)
}

func needs(d plan.Demand) string {
	text := world.Count(d.Backends, "backend")
	if d.ACLRanges > 0 {
		text += " and " + world.Count(d.ACLRanges, "source range")
	}
	return text
}
