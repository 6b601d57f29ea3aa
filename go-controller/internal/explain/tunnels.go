// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// beyondTunnels returns those nodes of endpoints that the active gateway of an address does not reach, and for each the
// node whose tunnels are down. all is set if no gateway reaches any of them. With BGP alone, routers choose the node.
func (p *path) beyondTunnels(nodes map[string]bool) (beyond map[string]string, all bool) {
	beyond = map[string]string{}
	all = len(nodes) > 0 && len(p.byDomain) > 0
	for _, a := range p.byDomain {
		gateway := p.activeGateway(a)
		for node := range nodes {
			if down := world.ThroughTunnel(p.layout.TunnelsDown, gateway, node); gateway != "" && down != "" {
				beyond[node] = down
			} else {
				all = false
			}
		}
	}
	return beyond, all
}

// activeGateway returns the active gateway of an address according to the status of its L2Domain, or an empty string.
func (p *path) activeGateway(a netip.Addr) string {
	id, ok := p.layout.ConfiguredShardFor(p.service.Labels, p.allocation.PoolOf(a), a)
	if !ok {
		return ""
	}
	for _, d := range p.world.Domains {
		if d.Name == id.Domain {
			return d.Active[id.Index]
		}
	}
	return ""
}

// addBeyondTunnels records that connections to endpoints on some nodes fail.
func (p *path) addBeyondTunnels(link *Link, nodes map[string]bool) {
	beyond, all := p.beyondTunnels(nodes)
	list := slices.Sorted(maps.Keys(beyond))
	if len(list) == 0 {
		return
	}
	cause := beyond[list[0]]
	link.State, link.Reason = Warning, v1alpha1.ExcludedFaulty
	if all {
		link.State = Broken
	}
	why, command := p.whyTunnelsDown(cause)
	link.Command = command
	link.Message += fmt.Sprintf("; connections to those on node %s fail, because OVN does not reach node %s: %s",
		joined(list), cause, why)
}

// whyTunnelsDown returns what is known of a node whose tunnels are down, and a command against it. What the guard or
// agent of the node reports explains them.
func (p *path) whyTunnelsDown(node string) (why, command string) {
	if fault := p.anyFault(node); fault != "" {
		return fault, p.mendFault(node, fault)
	}
	return p.layout.TunnelsDown[node], printable.Command("ovs-vsctl --columns=name,options,bfd_status find Interface "+
		"type=geneve   # on node %s, if it is up; then look at UDP port 6081 between the nodes", node)
}
