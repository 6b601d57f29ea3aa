// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
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
	link.State = Warning
	if all {
		link.State = Broken
	}
	reason, why, command := p.whyTunnelsDown(cause)
	link.Reason, link.Command = reason, command
	link.Message += fmt.Sprintf("; connections to those on node %s fail, because OVN does not reach node %s: %s",
		joined(list), cause, why)
}

// whyTunnelsDown returns what is known of a node whose tunnels are down, and a command against it. What the guard or
// agent of the node reports explains them.
func (p *path) whyTunnelsDown(node string) (reason, why, command string) {
	if fault := p.anyFault(node); fault.Message != "" {
		return v1alpha1.ExcludedFaulty, fault.Message, p.mendFault(node, fault)
	}
	if why = p.unanswered(node); why != "" {
		return v1alpha1.ReasonNodeSilent, why, lookAt(node)
	}
	why = p.layout.TunnelsDown[node].Why + p.sinceLastReport(node)
	return v1alpha1.ExcludedFaulty, why, printable.Command("ovs-vsctl "+
		"--columns=name,options,bfd_status find Interface type=geneve   # on node %s, if it is up; then look at UDP port "+
		"6081 between the nodes", node)
}

// freshReport is the age below which the last report of a node shows that it runs. A guard or agent that reports a
// fault, or whose node is active, renews its Lease every 10 s.
const freshReport = 15 * time.Second

// unanswered returns why a node may be dead although its kubelet still counts as reporting, as in the first 40 s: no
// other gateway reaches it, and its last report is not fresh. It is empty if nothing shows that.
func (p *path) unanswered(node string) string {
	fault := p.layout.TunnelsDown[node]
	if !fault.Unanswered {
		return ""
	}
	if t := p.objects.LastReport(node); t != nil && p.Now.Sub(t.Time) < freshReport {
		return ""
	}
	return fault.Why + ": the node or its network may be dead" + p.sinceLastReport(node)
}

// sinceLastReport returns a clause about the age of the last report of a node that does not answer other gateways. It
// is empty for other nodes, and if the age is not known.
func (p *path) sinceLastReport(node string) string {
	t := p.objects.LastReport(node)
	if t == nil || !p.layout.TunnelsDown[node].Unanswered {
		return ""
	}
	return fmt.Sprintf("; its last report is %s old", duration.HumanDuration(max(p.Now.Sub(t.Time), 0)))
}

// UnknownSessions returns the nodes whose BGP sessions are not known, and why. What they reported last may be out of
// date.
func UnknownSessions(o *objects.Objects, now time.Time) map[string]string {
	p, nodes := clusterPath(o, Question{Now: now}), map[string]string{}
	for _, n := range o.NodeStatuses {
		if why := p.unknownSessions(n.Name); why != "" {
			nodes[n.Name] = why
		}
	}
	return nodes
}

// unknownRoutes returns why it is not known what a node advertises in a session; empty if it is.
func unknownRoutes(s world.PeerSession) (reason, why string) {
	switch {
	case s.Unread != "":
		return ReasonNotRead, s.Unread
	case s.Unknown:
		return v1alpha1.ReasonNodeSilent, s.Problem
	}
	return "", ""
}

// unknownSessions returns why the sessions of a node are not known. It is empty if they are, and if its kubelet no
// longer reports, which the conditions of its BGPNodeStatus show.
func (p *path) unknownSessions(node string) string {
	if why := cmp.Or(p.unanswered(node), p.objects.ReportExpired(node, p.Now)); why != "" {
		return why
	}
	if s := p.stoppedDaemon(node); s != nil {
		return s.String()
	}
	return ""
}
