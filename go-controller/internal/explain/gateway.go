// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// addNoGateway adds the reason why no node can be a gateway of a domain.
func (p *path) addNoGateway(d *v1alpha1.L2Domain, c *metav1.Condition) {
	if len(d.Status.ExcludedNodes) == 0 {
		p.broken(LinkGateway, d.Name, c.Reason, c.Message, selectGateways(d))
		return
	}
	first := nearest(d)
	reason := first.Reason
	for _, n := range d.Status.ExcludedNodes {
		if n.Reason != first.Reason && n.Reason != v1alpha1.ExcludedNotAttached {
			reason = c.Reason
		}
	}
	p.broken(LinkGateway, d.Name, reason, c.Message, p.mend(d, first))
}

// selectGateways returns the command that selects other nodes as gateways of a domain.
func selectGateways(d *v1alpha1.L2Domain) string {
	return printable.Command("kubectl edit l2domain %s   # spec.nodeSelectors", d.Name)
}

// nearest returns the excluded node of a domain that lacks least to be a gateway: one on the segment, if there is any.
func nearest(d *v1alpha1.L2Domain) *v1alpha1.ExcludedNode {
	at := slices.IndexFunc(d.Status.ExcludedNodes, func(n v1alpha1.ExcludedNode) bool {
		return n.Reason != v1alpha1.ExcludedNotAttached
	})
	return &d.Status.ExcludedNodes[max(at, 0)]
}

// hasGateway reports whether at least one node can be a gateway of a domain, or is one.
func hasGateway(d *v1alpha1.L2Domain) bool {
	return d.Status.EligibleNodes > 0 || slices.ContainsFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool {
		return len(s.Gateways) > 0
	})
}

// addNotReady adds a domain without a gateway, for which the controller withholds the address of the Service. Which
// address it is, only the decision shows.
func (p *path) addNotReady() {
	c := *p.allocated
	if p.unread("ipaddresspools", "l2domains", "nodes") {
		p.broken(LinkDomain, "", c.Reason, c.Message, "")
		return
	}
	for _, a := range p.allocation.Services[p.Service].Addrs {
		pool := p.allocation.PoolOf(a)
		shard, configured := p.layout.ConfiguredShardFor(p.service.Labels, pool, a)
		if d := objects.Named(p.objects.Domains, shard.Domain); configured && d != nil {
			p.ok(LinkPool, pool, p.usage(pool))
			p.ok(LinkDomain, d.Name, "is to announce the address on physical network "+segment(d))
			c.Reason = v1alpha1.ReasonNoGateway
			p.addNoGateway(d, &c)
			return
		}
	}
	p.broken(LinkDomain, "", c.Reason, c.Message, "kubectl describe l2domains")
}

// addGateway adds the active gateway of a shard.
func (p *path) addGateway(a netip.Addr, d *v1alpha1.L2Domain, s *v1alpha1.ShardStatus) {
	if s.Active == "" {
		if showsGateway(p.announced, a) {
			// The status of the L2Domain is written after that of the Service.
			p.ok(LinkGateway, d.Name, fmt.Sprintf("a gateway answers for %s; the status of the L2Domain does not name it yet",
				a))
		} else {
			p.addNoActive(d, s)
		}
		return
	}
	link := Link{Name: LinkGateway, Object: s.Active, State: OK, Message: fmt.Sprintf("answers for %s", a)}
	if c := p.verdictOn(a, v1alpha1.ReasonStaleFlow, v1alpha1.ReasonNoGuard, v1alpha1.ReasonSeveralActiveGateways,
		v1alpha1.ReasonGatewayFaulty); c != nil {
		link.State, link.Reason, link.Message = stateOf(c), c.Reason, c.Message
		switch c.Reason {
		case v1alpha1.ReasonStaleFlow:
			link.Command = p.restartNode(s.Active)
			if l, ok := p.listed[p.Service]; ok && l.addr == a {
				link.Command = l.command()
			}
		case v1alpha1.ReasonNoGuard:
			link.Command = p.ownPods(s.Active) + withGuards
		default:
			link.Command = printable.Command("kubectl describe l2domain %s   # and UDP port 6081 between the gateways",
				d.Name)
			if name, fault := p.faultyClaimant(d, s); name != "" {
				link.Object, link.Reason, link.Command = name, v1alpha1.ExcludedFaulty, p.mendFault(name, fault)
			}
		}
		p.add(link)
		return
	}
	fault := p.fault(s.Active, d.Spec.PhysicalNetwork)
	held := p.layout.HeldText(world.ShardID{Domain: d.Name, Index: int(s.Index)})
	switch out := excluded(d, s.Active); {
	case fault.Message != "":
		link.State, link.Reason = Broken, v1alpha1.ExcludedFaulty
		link.Message = fmt.Sprintf("node %s, the active gateway of %s: %s", s.Active, a, fault.Message)
		link.Command = p.mendFault(s.Active, fault)
		switch {
		case !slices.ContainsFunc(s.Gateways, func(name string) bool {
			return p.fault(name, d.Spec.PhysicalNetwork).Message == ""
		}):
			link.Message += "; every gateway of the shard has a fault: " + joined(s.Gateways)
		case ControllerSilent(p.objects, p.Now) != "": // OVN itself does not detect what guards report.
			link.Message += "; its shards do not move to another gateway while no controller runs"
			link.Command = controllerPods(p.objects.Leader) + "   # start it; or mend the fault: " + link.Command
		default:
			link.Message += "; its shards are about to move to another gateway"
		}
	case p.unreachable(s.Active, s.Gateways...):
		// OVN keeps the claim of a dead gateway until another one takes the shard over.
		link.State, link.Reason = Unknown, v1alpha1.ReasonNodeSilent
		link.Message = fmt.Sprintf("node %s, the active gateway of %s, %s, and there is no other gateway whose kubelet "+
			"reports", s.Active, a, mayBeDead)
		link.Command = lookAt(s.Active)
	case out != nil && out.Reason == v1alpha1.ExcludedDraining:
		link.State, link.Reason, link.Message = Warning, out.Reason, out.Message
		link.Command = p.undrain(s.Active)
	case held != "":
		link.State, link.Reason, link.Message = Warning, v1alpha1.ReasonNodeSilent, link.Message+"; "+held
		link.Command = p.ownPods(s.Active)
	case len(s.Gateways) < v1alpha1.MinGatewaysForFailover:
		link.State, link.Reason = Warning, v1alpha1.ReasonTooFewGateways
		link.Message += fmt.Sprintf("; the shard has %s, fewer than %d", world.Count(len(s.Gateways), "gateway"),
			v1alpha1.MinGatewaysForFailover)
		if len(d.Status.ExcludedNodes) > 0 {
			first := nearest(d)
			link.Message += "; " + first.Message
			link.Command = p.mend(d, first)
		}
	case len(s.Gateways)-len(p.deadOf(s.Gateways)) < v1alpha1.MinGatewaysForFailover:
		dead := p.deadOf(s.Gateways)
		link.State, link.Reason = Warning, v1alpha1.ReasonTooFewGateways
		link.Message += fmt.Sprintf("; of the %s of the shard, %s may be dead (the kubelet has stopped reporting)",
			world.Count(len(s.Gateways), "gateway"), joined(dead))
		link.Command = lookAt(dead[0])
	default:
		if at := slices.IndexFunc(s.Gateways, func(name string) bool {
			return p.fault(name, d.Spec.PhysicalNetwork).Message != ""
		}); at >= 0 {
			standby, fault := s.Gateways[at], p.fault(s.Gateways[at], d.Spec.PhysicalNetwork)
			link.State, link.Reason, link.Command = Warning, v1alpha1.ExcludedFaulty, p.mendFault(standby, fault)
			link.Message += fmt.Sprintf("; gateway %s can't take over: %s", standby, fault.Message)
		}
	}
	p.add(link)
}

// faultyClaimant returns a gateway that has claimed a shard and can't release it because of a fault. The name is empty
// if there is none.
func (p *path) faultyClaimant(d *v1alpha1.L2Domain, s *v1alpha1.ShardStatus) (name string, fault world.Fault) {
	shard := world.ShardID{Domain: d.Name, Index: int(s.Index)}
	for _, n := range p.world.Nodes {
		if n.Agent == nil || !slices.Contains(s.Gateways, n.Name) {
			continue
		}
		_, claims := n.Agent.Claims[shard]
		if fault := p.fault(n.Name, world.EveryNetwork); claims && fault.Message != "" {
			return n.Name, fault
		}
	}
	return "", world.Fault{}
}

// showsGateway reports whether a condition Announced shows that a gateway has claimed the shard of an address, whether
// or not the Service has endpoints. The condition is nil if there is none.
func showsGateway(c *metav1.Condition, a netip.Addr) bool {
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonUnsteady ||
		c.Reason == v1alpha1.ReasonNoEndpoints && mentions(c.Message, a))
}

// deadOf returns those of some nodes whose kubelets have stopped reporting.
func (p *path) deadOf(nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return !p.unreachable(name) })
}

// addNoActive adds a shard that no gateway has claimed.
func (p *path) addNoActive(d *v1alpha1.L2Domain, s *v1alpha1.ShardStatus) {
	if p.stopped("", northdNames()...) != nil || p.stopped("", northboundNames()...) != nil {
		p.add(Link{Name: LinkGateway, Object: d.Name, State: Unused, Message: "no gateway can claim the shard before OVN " +
			"has its rows"})
		return
	}
	for _, name := range s.Gateways {
		if fault := p.fault(name, d.Spec.PhysicalNetwork); fault.Message != "" {
			p.broken(LinkGateway, name, v1alpha1.ReasonNoActiveGateway, fmt.Sprintf("no gateway has claimed shard %d; node "+
				"%s: %s", s.Index, name, fault.Message), p.mendFault(name, fault))
			return
		}
	}
	p.mayLackRows = true
	_, command, _ := p.mendChange("", true)
	p.broken(LinkGateway, d.Name, v1alpha1.ReasonNoActiveGateway, fmt.Sprintf("no gateway has claimed shard %d, "+
		"although no guard of %s reports a fault: ovn-northd may not have translated its rows", s.Index, joined(s.Gateways)),
		command)
}

// whyUnclaimed returns the command about a shard that no gateway has claimed, and what may be why.
func (p *path) whyUnclaimed(d *v1alpha1.L2Domain, s *v1alpha1.ShardStatus) (command, why string) {
	faulty := func(name string) bool { return p.fault(name, d.Spec.PhysicalNetwork).Message != "" }
	if p.hasAgents() || p.world.Cluster.OpenShiftSDN || slices.ContainsFunc(s.Gateways, faulty) {
		return describe(d), ""
	}
	_, command, stopped := p.mendChange("", true)
	if stopped != nil {
		return command, ": " + stopped.String()
	}
	return command, ": ovn-northd may not have translated its rows"
}

func excluded(d *v1alpha1.L2Domain, node string) *v1alpha1.ExcludedNode {
	for i := range d.Status.ExcludedNodes {
		if d.Status.ExcludedNodes[i].Name == node {
			return &d.Status.ExcludedNodes[i]
		}
	}
	return nil
}

// restartNode returns the command that restarts ovnkube on a node.
func (p *path) restartNode(node string) string {
	if pod := p.podWith(node, controllerNames()...); pod != nil {
		return printable.Command("kubectl -n %s delete pod %s   # OVN-Kubernetes starts it again", pod.Namespace, pod.Name)
	}
	return printable.Command("kubectl delete pods -A --field-selector spec.nodeName=%s -l app=ovnkube-node   # "+
		"OVN-Kubernetes starts them again", node)
}

// unreachable reports whether the kubelets of all these nodes have stopped reporting.
func (p *path) unreachable(node string, others ...string) bool {
	reports := func(name string) bool {
		n := objects.Named(p.objects.Nodes, name)
		return n == nil || !p.objects.Node(n, p.Now).Unreachable
	}
	return !reports(node) && !slices.ContainsFunc(others, reports)
}

// maybeDead returns what shows that a node may be dead. It is empty if nothing does.
func (p *path) maybeDead(node string) string {
	if p.unreachable(node) {
		return "node " + node + " " + mayBeDead
	}
	if why := p.unanswered(node); why != "" {
		return "node " + node + ": " + why
	}
	return ""
}

// mayBeDead is what is known about an unreachable node.
const mayBeDead = "may be dead: its kubelet has stopped reporting"

// excludingFault is fault, or what prevents changes of the zone of a node: it serves, but is no gateway to move to.
func (p *path) excludingFault(node, network string) world.Fault {
	f, n := p.fault(node, network), objects.Named(p.objects.Nodes, node)
	if f.Message == "" && n != nil && p.hasAgents() {
		return p.objects.Node(n, p.Now).WithAgentFault().FaultOf(network)
	}
	return f
}

// fault returns what prevents a node from serving a network; the zero value if nothing does.
func (p *path) fault(node, network string) world.Fault {
	n := objects.Named(p.objects.Nodes, node)
	if n == nil {
		return world.Fault{}
	}
	is := p.objects.Node(n, p.Now)
	if f := is.FaultOf(network); f.Message != "" {
		return f
	}
	if p.hasAgents() && is.Agent != nil && is.Agent.Problem != "" {
		return world.Fault{Kind: world.FaultAgent, Message: is.Agent.Problem}
	}
	if s := p.stopped(node, controllerNames()...); s != nil {
		return world.Fault{Kind: world.FaultOVNController, Message: "ovn-controller does not run: " + s.String()}
	}
	return world.Fault{}
}
