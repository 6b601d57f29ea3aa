// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// reachabilityVerdict returns the verdict on addresses that are announced by OVN and whose Service has backends, given
// the reason and message if gateways reach all of its endpoints: they may reach some only, or none.
func (v *Builder) reachabilityVerdict(p *plan.Service, reason, message string) *status.Verdict {
	if lagging := v.lagging(p.Key); lagging != "" {
		reason, message = v1alpha1.ReasonZoneLagging, message+"; "+lagging
	}
	switch beyond, all := v.beyondTunnels(p); {
	case all:
		return notAnnounced(v1alpha1.ReasonNoEndpoints,
			"no gateway reaches an endpoint of the Service: %s; %s", beyond, message)
	case beyond != "":
		return &status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPartlyUsable,
			Message: message + "; " + beyond}
	}
	return &status.Verdict{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// beyondTunnels describes the endpoints of a plan that the gateways of its addresses do not reach because OVN's tunnels
// are down. It returns an empty text if there are none, and whether no endpoint is reached at any address.
func (v *Builder) beyondTunnels(p *plan.Service) (text string, all bool) {
	if len(v.Layout.TunnelsDown) == 0 {
		return "", false
	}
	active := make(map[netip.Addr]string, len(p.VIPs))
	for _, vip := range p.VIPs {
		active[vip.Addr] = v.active[vip.Shard]
	}
	every, failing, down := map[netip.Addr]bool{}, map[netip.Addr]bool{}, map[string]bool{}
	all = true
	for _, l := range p.Listeners {
		for _, b := range l.Backends {
			every[b.Addr.Addr()] = true
			node := world.ThroughTunnel(v.Layout.TunnelsDown, active[l.VIP], b.Node)
			if node == "" {
				all = false
				continue
			}
			failing[b.Addr.Addr()], down[node] = true, true
		}
	}
	if len(failing) == 0 {
		return "", false
	}
	nodes := slices.Sorted(maps.Keys(down))
	text = fmt.Sprintf("connections to %d of %s fail, because OVN does not reach %s: ", len(failing),
		world.Count(len(every), "endpoint"), named("node", nodes))
	if len(nodes) > 1 {
		text += "node " + nodes[0] + ": "
	}
	return text + v.Layout.TunnelsDown[nodes[0]].Why, all
}
