// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// outcome returns the allocation outcome of a Service, without new addresses that are withheld.
func (v *Builder) outcome(s *world.Service) ipam.Outcome {
	o := v.Allocation.Services[s.Key]
	if why := v.withheld(s, o); why != "" {
		o.Addrs = nil
		o.Reason, o.Message = ipam.Reason(v1alpha1.ReasonDomainNotReady), why
	}
	return o
}

// withheld returns why the new addresses of a Service are not published: no gateway can receive requests for them yet.
// OVN-Kubernetes computes the flows for an address when it sees the address in a status, and OVN's port must exist by
// then (package place, bridge.go).
func (v *Builder) withheld(s *world.Service, o ipam.Outcome) string {
	if len(s.Shown()) > 0 {
		return "" // a stale flow is repaired later; removing a working address would be worse
	}
	for _, a := range o.Addrs {
		pool := v.Allocation.PoolOf(a)
		if why := v.Layout.PublishBlocked(pool); why != "" && !v.BGP.TakesPool(pool) {
			return why
		}
	}
	return ""
}

// flowState describes the flow that keeps requests from a load balancer. The zero value means that no such flow is
// known.
type flowState struct {
	status          metav1.ConditionStatus
	reason, message string
}

// flows returns the verdict on OVN's routers and on the bridges of the active gateways of a Service's addresses.
func (v *Builder) flows(s *world.Service) flowState {
	placements, hosts := v.Placements.Services[s.Key], v.localHosts(s)
	for i := range placements {
		if placements[i].Reason == "" && v.World.Misplaced[placements[i].Addr] {
			return flowState{metav1.ConditionFalse, v1alpha1.ReasonMisplacedFlow, v.misplaced(&placements[i])}
		}
		node := v.nodes[v.active[placements[i].Shard]]
		if placements[i].Reason != "" || node == nil {
			continue
		}
		known, message := v.Layout.BridgeState(&placements[i], node, v.World)
		switch {
		case !known:
			return flowState{metav1.ConditionUnknown, v1alpha1.ReasonNoGuard, message}
		case message != "":
			return flowState{metav1.ConditionFalse, v1alpha1.ReasonStaleFlow, message}
		}
		if message := v.bypass(hosts, &placements[i], node); message != "" {
			return flowState{metav1.ConditionFalse, v1alpha1.ReasonUnsupported, message}
		}
	}
	return flowState{}
}

// misplaced describes what is wrong with the flows of an address on the router of its shard.
func (v *Builder) misplaced(placement *place.Placement) string {
	cause := ""
	if v.World.Listed.HasExactly(placement.Addr) {
		cause = fmt.Sprintf("; another Service lists the address in spec.externalIPs (kubectl slb explain %s names it): "+
			"remove it there first", placement.Addr)
	}
	return fmt.Sprintf("address %s: the router of shard %d of L2Domain %s has no flow for it, or also has that of "+
		"OVN-Kubernetes, because of a bug in ovn-northd; docs/failures.md, Failure modes, has the workaround%s",
		placement.Addr, placement.Shard.Index, placement.Shard.Domain, cause)
}

// localHosts returns, by node, the first endpoint on the network of the node itself of a Service with
// externalTrafficPolicy: Local. It is nil if the Service has another policy.
func (v *Builder) localHosts(s *world.Service) map[string]netip.Addr {
	p := v.Plans[s.Key]
	if !s.LocalPolicy || p == nil {
		return nil
	}
	hosts := map[string]netip.Addr{}
	for _, l := range p.Listeners {
		for _, b := range l.Backends {
			if _, known := hosts[b.Node]; b.HostNetwork && !known {
				hosts[b.Node] = b.Addr.Addr()
			}
		}
	}
	return hosts
}

// bypass describes the flow of OVN-Kubernetes that takes requests to an address past OVN, or returns an empty string if
// there is none. With externalTrafficPolicy: Local, and a ready endpoint on the network of the node itself (hosts),
// OVN-Kubernetes translates all requests that arrive on the bridge of its gateway to this endpoint. They have the MAC
// address of the shard, so the node drops them.
func (v *Builder) bypass(hosts map[string]netip.Addr, placement *place.Placement, n *world.Node) string {
	host, local := hosts[n.Name]
	if !local || !v.Layout.OnGatewayBridge(placement, n) {
		return ""
	}
	return fmt.Sprintf("spec.externalTrafficPolicy: Local with endpoint %s on the network of node %s, the active "+
		"gateway of address %s: OVN-Kubernetes sends all requests to this endpoint, which does not receive them "+
		"because they have the MAC address of OVN's router; with Cluster, endpoints see the clients' own addresses, too",
		host, n.Name, placement.Addr)
}
