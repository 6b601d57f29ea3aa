// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Domains returns the statuses of all L2Domains, by name.
func (v *Builder) Domains() map[string]status.Merge[*v1alpha1.L2Domain] {
	addresses := map[world.ShardID]int32{}
	counted := make(map[netip.Addr]struct{}, len(v.Placements.Services)) // several Services can share an address
	for _, placements := range v.Placements.Services {
		for _, placement := range placements {
			if _, again := counted[placement.Addr]; placement.Reason == "" && !again {
				counted[placement.Addr] = struct{}{}
				addresses[placement.Shard]++
			}
		}
	}
	out := make(map[string]status.Merge[*v1alpha1.L2Domain], len(v.Layout.Domains))
	for _, d := range v.Layout.Domains {
		remarks := d.Problems
		if d.Move.State == world.MoveFailed {
			remarks = append(slices.Clip(remarks), fmt.Sprintf("annotation %s: %s", v1alpha1.AnnotationMove, d.Move.Message))
		}
		verdicts := status.Verdicts{v1alpha1.ConditionAccepted: status.Accepted(d.Spec.Problems, remarks)}
		if ready := v.domainReady(d); ready != nil {
			verdicts[v1alpha1.ConditionReady] = *ready
		}
		out[d.Spec.Name] = status.Domain(v.domain(d, addresses), verdicts, v.Synced && !v.Unread || d.Unserved != "")
	}
	return out
}

func (v *Builder) domain(d *place.Domain, addresses map[world.ShardID]int32) v1alpha1.L2DomainStatus {
	out := v1alpha1.L2DomainStatus{Mode: string(v.servedIn(d)), ModeMessage: d.ModeMessage}
	if m := d.Move; m.State != "" {
		out.Move = &v1alpha1.MoveStatus{Request: m.Text, State: string(m.State), Message: m.Message}
	}
	anchors, ordinals := v.anchors(d.Spec.Name), v.ordinals(d.Spec.Name)
	active := map[string]struct{}{}
	for _, shard := range d.Shards {
		s := v1alpha1.ShardStatus{Index: int32(shard.ID.Index), Addresses: addresses[shard.ID], Active: v.active[shard.ID],
			Anchors: anchors[shard.ID], Ordinal: ordinals[shard.ID]}
		for _, g := range shard.Gateways {
			s.Gateways = append(s.Gateways, g.Node)
		}
		if s.Addresses > 0 {
			out.Shards = append(out.Shards, s)
			active[s.Active] = struct{}{}
		}
	}
	for _, left := range d.Excluded {
		if len(out.ExcludedNodes) < v1alpha1.MaxExcludedNodes {
			out.ExcludedNodes = append(out.ExcludedNodes,
				v1alpha1.ExcludedNode{Name: left.Node, Reason: string(left.Reason), Message: status.Truncate(left.Message)})
		}
	}
	out.EligibleNodes = int32(v.eligible(d))
	delete(active, "")
	out.ActiveGatewaySummary = strings.Join(slices.Sorted(maps.Keys(active)), ", ")
	return out
}

// eligible returns the number of nodes that can be gateways of a domain now: those that are usable, those that are not
// needed, and, if all gateways drain, those that stay because there are no others.
func (v *Builder) eligible(d *place.Domain) int {
	n := v.GatewayCounts(d).Usable
	for _, left := range d.Excluded {
		stays := left.Reason == place.ReasonDraining && d.AllDraining && d.IsGateway(left.Node)
		if (stays || left.Reason == place.ReasonEnoughGateways) && !v.nodes[left.Node].Unreachable {
			n++
		}
	}
	return n
}

// GatewayCounts are the counts of one L2Domain.
type GatewayCounts struct {
	// Usable are the gateways that are neither faulty nor draining, and whose nodes Kubernetes can reach.
	Usable int
	// Shards are those with addresses, Unclaimed those of them that no gateway has claimed.
	Shards, Unclaimed int
}

// GatewayCounts returns the counts of a domain.
func (v *Builder) GatewayCounts(d *place.Domain) GatewayCounts {
	var counts GatewayCounts
	usable := map[string]bool{}
	for _, shard := range d.Shards {
		for _, g := range shard.Gateways {
			usable[g.Node] = !v.nodes[g.Node].Unreachable && !d.IsHeld(g.Node)
		}
	}
	for _, left := range d.Excluded {
		delete(usable, left.Node)
	}
	for _, is := range usable {
		if is {
			counts.Usable++
		}
	}
	for shard := range v.anchors(d.Spec.Name) {
		counts.Shards++
		// While the databases can't be read, nothing is known about claims.
		if v.active[shard] == "" && v.Synced && !v.Unread && v.Unreachable == "" {
			counts.Unclaimed++
		}
	}
	return counts
}

// servedIn returns the mode in which a domain is served, or that in which gateways may still answer for its addresses.
// Which rows of a central installation are left only a controller with the database knows.
func (v *Builder) servedIn(d *place.Domain) world.ServingMode {
	was := d.Spec.Served
	switch {
	case d.Mode != "":
		return d.Mode
	case was == world.ServedCentrally && v.hasRows(d.Spec.Name), was == world.ServedByZones &&
		len(world.ClaimedBy(v.World.Nodes, d.Spec.Name, "")) > 0:
		return was
	}
	return ""
}

// hasRows reports whether the northbound database may have shards of a domain.
func (v *Builder) hasRows(domain string) bool {
	if v.World.Cluster.NoDatabase || !v.Synced || v.Unread || v.Unreachable != "" {
		return true
	}
	for shard := range v.World.ShardStates {
		if shard.Domain == domain {
			return true
		}
	}
	return false
}

// anchors returns the external addresses of a domain's shards.
func (v *Builder) anchors(domain string) map[world.ShardID][]string {
	anchors := map[world.ShardID][]string{}
	for _, d := range v.Topology.Domains {
		if d.Name != domain {
			continue
		}
		for _, s := range d.Shards {
			for _, a := range s.Anchors {
				anchors[s.ID] = append(anchors[s.ID], a.Addr().String())
			}
		}
	}
	return anchors
}

// domainReady returns the verdict whether a domain can announce addresses, or nil while the dataplane has not reported.
func (v *Builder) domainReady(d *place.Domain) *status.Verdict {
	not := func(reason, message string) *status.Verdict {
		return &status.Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case len(d.Spec.Problems) > 0:
		return not(v1alpha1.ReasonInvalid, "the L2Domain is invalid and not served; see "+v1alpha1.ConditionAccepted)
	case d.DisabledReason != "":
		return not(v1alpha1.ReasonDisabledByMode, d.DisabledReason)
	case d.Unserved != "":
		return not(v1alpha1.ReasonUnsupported, d.Unserved)
	case !v.Synced:
		return nil
	case v.Unreachable != "":
		return &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDatabaseUnreachable,
			Message: v.Unreachable}
	case len(d.Shards) == 0:
		return not(v1alpha1.ReasonNoGateway, d.NoGateway)
	case len(d.Pools) == 0:
		return not(v1alpha1.ReasonNoPools, strings.Join(append([]string{"no pool is assigned to the L2Domain"},
			d.Problems...), "; "))
	case v.Unread:
		return nil
	case v.topologyErrorOf(d) != nil:
		return not(v1alpha1.ReasonDataplaneError, fmt.Sprintf("%v; retrying", v.topologyErrorOf(d)))
	case !v.Configured:
		return nil
	}
	ready := status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: strings.Join(slices.Concat([]string{world.Count(len(d.Shards), "shard") + " with gateways"}, d.Warnings,
			d.Unmatched), "; ")}
	switch {
	case d.AllDraining:
		ready.Reason = v1alpha1.ReasonGatewaysDraining
	case d.TooFewGateways:
		ready.Reason = v1alpha1.ReasonTooFewGateways
	case d.TunnelsDown, d.Unobserved:
		ready.Reason = v1alpha1.ReasonPartlyUsable
	}
	return &ready
}

// topologyErrorOf returns the error that prevents shards of a domain from being configured, or nil.
func (v *Builder) topologyErrorOf(d *place.Domain) error {
	var shards dataplane.ShardsError
	if !errors.As(v.TopologyError, &shards) {
		return v.TopologyError
	}
	own := dataplane.ShardsError{}
	for id, why := range shards {
		if id.Domain == d.Spec.Name {
			own[id] = why
		}
	}
	if len(own) == 0 {
		return nil
	}
	return own
}
