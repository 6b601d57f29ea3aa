// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// undecided is what keeps the gateways of a new L2Domain from being known before the edit. The order of gateways
// depends on all of them: a node too many or too few changes it.
type undecided struct {
	// nodes may be gateways, sorted.
	nodes []string
	// unreported are those of them of which it is not known whether they have the physical network.
	unreported []string
	// first means that a shard comes to the node whose guard is the first to report OVN's port on the bridge of
	// OVN-Kubernetes' own gateway, and stays there.
	first bool
}

// undecidedDomains returns the new L2Domains whose gateways are not known, by name. since is the cluster before the
// edit, and ports are OVN's ports that the guards of nodes report.
func (d *decision) undecidedDomains(since *objects.Objects,
	ports map[string]map[string]world.Localnet) map[string]undecided {
	out := map[string]undecided{}
	for _, domain := range d.Layout.Domains {
		if was := objects.Named(since.Domains, domain.Spec.Name); was != nil && isProcessed(was) {
			continue
		}
		var u undecided
		for _, n := range d.World.Nodes {
			if !d.mayServe(domain, n) {
				continue
			}
			u.nodes = append(u.nodes, n.Name)
			if !d.isReported(domain.Spec, n, since) {
				u.unreported = append(u.unreported, n.Name)
			}
			_, seen := ports[n.Name][plan.LocalnetPort(domain.Spec.Name)]
			u.first = u.first || !seen && !domain.Spec.Preempt && d.Layout.OnGatewayBridge(&place.Placement{
				Shard: world.ShardID{Domain: domain.Spec.Name}}, n)
		}
		slices.Sort(u.nodes)
		slices.Sort(u.unreported)
		if len(u.nodes) > 1 && (u.first || len(u.unreported) > 0) {
			out[domain.Spec.Name] = u
		}
	}
	return out
}

// isProcessed reports whether a controller has written the status of a domain.
func isProcessed(d *v1alpha1.L2Domain) bool {
	s := &d.Status
	return len(s.Conditions) > 0 || s.EligibleNodes > 0 || len(s.ExcludedNodes) > 0 || len(s.Shards) > 0
}

// mayServe reports whether a node may become a gateway of a domain.
func (d *decision) mayServe(domain *place.Domain, n *world.Node) bool {
	return len(domain.Shards) > 0 && slices.Contains(domain.Spec.Nodes, n.Name) &&
		!slices.ContainsFunc(domain.Excluded, func(out place.ExcludedNode) bool {
			return out.Node == n.Name && out.Reason != place.ReasonEnoughGateways
		})
}

// isReported reports whether it is known that a node has, or does not have, the physical network of a domain: its agent
// or its guard says so, it is that of OVN-Kubernetes' own gateway, or the controller has written it to the status of
// another domain on the same network.
func (d *decision) isReported(spec *world.Domain, n *world.Node, since *objects.Objects) bool {
	if d.World.Cluster.OpenShiftSDN || n.Agent != nil && n.Agent.Bridges != nil ||
		spec.PhysicalNetwork == world.GatewayNetwork && n.GatewayBridge != "" {
		return true
	}
	return slices.ContainsFunc(since.Domains, func(o *v1alpha1.L2Domain) bool {
		return o.Spec.PhysicalNetwork == spec.PhysicalNetwork && isProcessed(o) &&
			len(o.Status.ExcludedNodes) < v1alpha1.MaxExcludedNodes &&
			slices.Contains(convert.Domain(o, since.Pools, since.Nodes).Nodes, n.Name)
	})
}

// unreported returns notes about the domains that the edit attaches to a physical network of which nodes have not
// reported whether they have it: their gateways are not known. Without agents, which report bridges, what is known of a
// network is what the controller has written to the status of another domain there.
func unreported(before *objects.Objects, is *decision) []string {
	var notes []string
	for _, d := range is.Layout.Domains {
		old, network := objects.Named(before.Domains, d.Spec.Name), d.Spec.PhysicalNetwork
		hasAgent := func(n *world.Node) bool { return n.Agent != nil }
		isKnown := func(n *world.Node) bool {
			return slices.Contains(d.Spec.Nodes, n.Name) && is.isReported(d.Spec, n, before)
		}
		u, isUndecided := is.undecided[d.Spec.Name]
		how := "ovn-bridge-mappings of the nodes (docs/tasks/segment.md) and, after the edit, " +
			printable.Command("kubectl describe l2domain %s", d.Spec.Name)
		switch {
		case old != nil && old.Spec.PhysicalNetwork == network, is.World.Cluster.OpenShiftSDN, d.DisabledReason != "",
			len(d.Spec.Nodes) == 0:
			continue
		case d.Unserved != "" && is.World.Cluster.NoDatabase && !slices.ContainsFunc(is.World.Nodes, hasAgent):
			how = printable.Command("kubectl -n %s get pods -o wide -l app.kubernetes.io/name=ovnkube-slb-node   # agents",
				before.ControllerNamespace())
		case d.Unserved != "":
			continue
		case isUndecided && u.first && len(u.unreported) == 0:
			notes = append(notes, fmt.Sprintf("L2Domain %s: a shard comes to the node whose guard is the first to report OVN's "+
				"new port on the bridge of OVN-Kubernetes' own gateway, and stays there", d.Spec.Name))
			continue
		case isUndecided && len(u.unreported) > 0 && len(u.unreported) < len(u.nodes):
			notes = append(notes, fmt.Sprintf("L2Domain %s: not known whether these nodes have physical network %s, so its "+
				"gateways are not known before the edit: %s; see %s", d.Spec.Name, network,
				world.Some(u.unreported, maxGroupNames), how))
			continue
		case slices.ContainsFunc(is.World.Nodes, isKnown):
			continue
		}
		notes = append(notes, fmt.Sprintf("L2Domain %s: no node has reported whether it has physical network %s, so its "+
			"gateways are not known before the edit: see %s", d.Spec.Name, network, how))
	}
	return notes
}
