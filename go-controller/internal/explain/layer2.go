// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// addDomain adds the L2Domain of an address and, if it announces the address, shard and gateway.
func (p *path) addDomain(a netip.Addr) {
	pool := p.allocation.PoolOf(a)
	shard, configured := p.layout.ConfiguredShardFor(p.service.Labels, pool, a)
	reason, message, command := "", "", ""
	d := objects.Named(p.objects.Domains, shard.Domain)
	excluding, text := p.layout.NotSelecting(p.service.Labels, pool, a)
	switch {
	case excluding != "":
		shard.Domain, reason, message = excluding, v1alpha1.ReasonServiceNotSelected, mentioning(a, text)
		command = printable.Command("kubectl edit l2domain %s   # spec.serviceSelectors", excluding)
	case !configured:
		why, text := p.layout.Idle(pool)
		if c := p.verdictOn(a, string(why)); c != nil && why != place.ReasonNoDomain {
			text = c.Message // of the controller, which knows its own flags
		}
		reason, message, command = string(why), mentioning(a, text), p.mendDomain(string(why), text, pool, a)
		if pool == "" { // addRetained says what to do.
			reason, command = v1alpha1.ReasonNoDomain, ""
			message = fmt.Sprintf("address %s is in no pool and in no subnet of an L2Domain", a)
		}
	case !slices.ContainsFunc(d.Spec.Subnets, func(s v1alpha1.Subnet) bool { return contains(s.CIDR, a) }):
		reason = v1alpha1.ReasonAddressOutsideSubnets
		message = fmt.Sprintf("address %s is in none of the subnets of the L2Domain, so no host on the segment asks for "+
			"it", a)
		command = printable.Command("kubectl edit l2domain %s   # spec.subnets", d.Name)
	default:
		if c := p.verdictOn(a, v1alpha1.ReasonUnsupported, v1alpha1.ReasonDomainNotReady); c != nil {
			p.add(Link{Name: LinkDomain, Object: d.Name, State: stateOf(c), Reason: c.Reason, Message: c.Message,
				Command: describe(d)})
			return
		}
		p.layer2, p.byDomain = true, append(p.byDomain, a)
		p.ok(LinkDomain, d.Name, fmt.Sprintf("announces %s on physical network %s", a, segment(d)))
		p.noteForeignSubnets(d.Name, world.FamilyOf(a))
		p.addShard(a, d, shard)
		return
	}
	if p.unread("bgpadvertisements", "bgppeers") {
		p.add(Link{Name: LinkDomain, State: Unused, Message: message})
		return
	}
	if p.survey.Takes(p.service, a) {
		p.add(Link{Name: LinkDomain, Object: shard.Domain, State: Unused,
			Message: message + "; a BGPAdvertisement selects it"})
		return
	}
	if reason == v1alpha1.ReasonNoDomain || reason == v1alpha1.ReasonServiceNotSelected {
		message += ", and no BGPAdvertisement selects it"
	}
	p.broken(LinkDomain, shard.Domain, reason, message, command)
}

// noteForeignSubnets adds the note that the subnets of a domain look like those of another network, if they do.
func (p *path) noteForeignSubnets(domain string, f world.Family) {
	at := slices.IndexFunc(p.layout.Domains, func(d *place.Domain) bool { return d.Spec.Name == domain })
	if at < 0 || p.unread("nodes", "leases") {
		return
	}
	if text := place.ForeignSubnetsOf(p.layout.Domains[at].Spec, p.world, f); text != "" {
		p.remark("L2Domain %s: %s", domain, text)
	}
}

// mentioning returns a message that begins with an address.
func mentioning(a netip.Addr, message string) string {
	if strings.HasPrefix(message, a.String()+": ") {
		return message
	}
	return fmt.Sprintf("%s: %s", a, message)
}

// mendDomain returns the command that makes a domain serve an address of a pool, or any of them if it is the zero Addr.
func (p *path) mendDomain(reason, message, pool string, a netip.Addr) string {
	switch reason {
	case v1alpha1.ReasonDisabledByMode:
		return enable(message)
	case v1alpha1.ReasonNoDomain:
		return p.addToDomain(pool, a)
	}
	if strings.Contains(message, "--enable-l2") {
		return p.ownPods("") + withAgents
	}
	return "kubectl describe l2domains"
}

// addToDomain returns the command that adds a pool to a domain whose subnets have the address, or an address of the
// pool if it is the zero Addr. Without such a domain, one must be created, or a BGPAdvertisement, which comes first if
// there is a BGPPeer: a pool of addresses of no segment is meant for that. The command does not apply docs/examples,
// which have another pool and other subnets.
func (p *path) addToDomain(pool string, a netip.Addr) string {
	has := func(s v1alpha1.Subnet) bool { return p.has(s.CIDR, pool, a) }
	for _, d := range sorted(p.objects.Domains) {
		switch {
		case !slices.ContainsFunc(d.Spec.Subnets, has):
			continue
		case len(d.Spec.IPAddressPools) == 0:
			return printable.Command("kubectl patch l2domain %s --type=merge -p %s", d.Name,
				fmt.Sprintf(`{"spec":{"ipAddressPools":[%q]}}`, pool))
		}
		return printable.Command("kubectl patch l2domain %s --type=json -p %s", d.Name,
			fmt.Sprintf(`[{"op":"add","path":"/spec/ipAddressPools/-","value":%q}]`, pool))
	}
	text, values := "an L2Domain, as docs/examples/l2domain.yaml, with pool %s and a subnet ", []any{pool}
	if len(p.objects.Peers) > 0 {
		text = "a BGPAdvertisement with pool %s, as in docs/tasks/bgp.md; or " + text
		values = append(values, pool)
	}
	if text = "kubectl apply -f FILE   # " + text; !a.IsValid() {
		return printable.Command(text+"of its addresses", values...)
	}
	return printable.Command(text+"that contains %s", append(values, a)...)
}

// has reports whether a subnet has the address, or an address of the pool if it is the zero Addr.
func (p *path) has(cidr, pool string, a netip.Addr) bool {
	if a.IsValid() {
		return contains(cidr, a)
	}
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && slices.ContainsFunc(p.world.Pools, func(w *world.Pool) bool {
		return w.Name == pool && slices.ContainsFunc(w.Ranges, netipx.RangeOfPrefix(prefix).Overlaps)
	})
}

func contains(cidr string, a netip.Addr) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Contains(a)
}

// verdictOn is verdict for a message that names an address.
func (p *path) verdictOn(a netip.Addr, reasons ...string) *metav1.Condition {
	if c := p.verdict(reasons...); c != nil && mentions(c.Message, a) {
		return c
	}
	return nil
}

// addShard adds the shard of an address, and its gateway.
func (p *path) addShard(a netip.Addr, d *v1alpha1.L2Domain, id world.ShardID) {
	name := id.Name()
	at := slices.IndexFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool { return int(s.Index) == id.Index })
	if c := p.verdictOn(a, v1alpha1.ReasonNoGateway); c != nil {
		p.add(Link{Name: LinkShard, Object: name, State: Unused, Message: "no gateway"})
		p.addNoGateway(d, c)
		return
	}
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case at < 0 && ready != nil && ready.Reason == v1alpha1.ReasonNoGateway: // the condition names another address
		p.add(Link{Name: LinkShard, Object: name, State: Unused, Message: "no gateway"})
		if !slices.ContainsFunc(p.links, func(l Link) bool { return l.Name == LinkGateway && l.Object == d.Name }) {
			p.addNoGateway(d, ready)
		}
		return
	case p.verdictOn(a, v1alpha1.ReasonAddressConflict) != nil: // other addresses of the shard may have a gateway
		p.add(Link{Name: LinkShard, Object: name, State: Unused, Message: "not announced"})
		return
	case at < 0:
		p.add(Link{Name: LinkShard, Object: name, State: Unknown, Reason: v1alpha1.ReasonProgramming,
			Message: "the status of the L2Domain does not show the shard yet", Command: describe(d)})
		return
	}
	s := &d.Status.Shards[at]
	p.ok(LinkShard, name, "gateways in order: "+joined(activeFirst(s)))
	p.addGateway(a, d, s)
}

// activeFirst returns the gateways of a shard in the order in which they take it over. The first one is the one that
// has claimed it, if any, which after a failover is not yet the first of s.Gateways and is marked then.
func activeFirst(s *v1alpha1.ShardStatus) []string {
	if s.Active == "" || len(s.Gateways) > 0 && s.Gateways[0] == s.Active {
		return s.Gateways
	}
	others := slices.DeleteFunc(slices.Clone(s.Gateways), func(name string) bool { return name == s.Active })
	return append([]string{s.Active + " (active)"}, others...)
}

// addNoGateway adds the reason why no node can be a gateway of a domain.
func (p *path) addNoGateway(d *v1alpha1.L2Domain, c *metav1.Condition) {
	if len(d.Status.ExcludedNodes) == 0 {
		command := printable.Command("kubectl edit l2domain %s   # spec.nodeSelectors", d.Name)
		p.broken(LinkGateway, d.Name, c.Reason, c.Message, command)
		return
	}
	first := &d.Status.ExcludedNodes[0]
	message := c.Message
	same := !slices.ContainsFunc(d.Status.ExcludedNodes, func(n v1alpha1.ExcludedNode) bool {
		return n.Reason != first.Reason
	})
	reason := c.Reason
	if same {
		reason = first.Reason
	}
	p.broken(LinkGateway, d.Name, reason, message, p.mend(d, first))
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
	if c := p.verdictOn(a, v1alpha1.ReasonStaleFlow, v1alpha1.ReasonNoGuard, v1alpha1.ReasonSeveralActiveGateways); c !=
		nil {
		link.State, link.Reason, link.Message = stateOf(c), c.Reason, c.Message
		switch c.Reason {
		case v1alpha1.ReasonStaleFlow:
			link.Command = p.restartNode(s.Active)
		case v1alpha1.ReasonNoGuard:
			link.Command = p.ownPods(s.Active) + withGuards
		default:
			link.Command = printable.Command("kubectl describe l2domain %s   # and UDP port 6081 between the gateways",
				d.Name)
			for _, name := range s.Gateways {
				if fault := p.fault(name, world.EveryNetwork); fault != "" && strings.Contains(c.Message, fault) {
					link.Object, link.Reason, link.Command = name, v1alpha1.ExcludedFaulty, p.mendFault(name, fault)
				}
			}
		}
		p.add(link)
		return
	}
	fault := p.fault(s.Active, d.Spec.PhysicalNetwork)
	switch out := excluded(d, s.Active); {
	case fault != "":
		link.State, link.Reason = Broken, v1alpha1.ExcludedFaulty
		link.Message = fmt.Sprintf("node %s, the active gateway of %s: %s", s.Active, a, fault)
		if !slices.ContainsFunc(s.Gateways, func(name string) bool { return p.fault(name, d.Spec.PhysicalNetwork) == "" }) {
			link.Message += "; every gateway of the shard has a fault: " + joined(s.Gateways)
		} else {
			link.Message += "; its shards are about to move to another gateway"
		}
		link.Command = p.mendFault(s.Active, fault)
	case p.unreachable(s.Active, s.Gateways...):
		// OVN keeps the claim of a dead gateway until another one takes the shard over.
		link.State, link.Reason = Unknown, v1alpha1.ReasonNodeSilent
		link.Message = fmt.Sprintf("node %s, the active gateway of %s, %s, and there is no other gateway whose kubelet "+
			"reports", s.Active, a, mayBeDead)
		link.Command = lookAt(s.Active)
	case out != nil && out.Reason == v1alpha1.ExcludedDraining:
		link.State, link.Reason, link.Message = Warning, out.Reason, out.Message
		link.Command = p.undrain(s.Active)
	case len(s.Gateways) < v1alpha1.MinGatewaysForFailover:
		link.State, link.Reason = Warning, v1alpha1.ReasonTooFewGateways
		link.Message += fmt.Sprintf("; the shard has %s, fewer than %d", world.Count(len(s.Gateways), "gateway"),
			v1alpha1.MinGatewaysForFailover)
		if len(d.Status.ExcludedNodes) > 0 {
			first := &d.Status.ExcludedNodes[0]
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
			return p.fault(name, d.Spec.PhysicalNetwork) != ""
		}); at >= 0 {
			standby, fault := s.Gateways[at], p.fault(s.Gateways[at], d.Spec.PhysicalNetwork)
			link.State, link.Reason, link.Command = Warning, v1alpha1.ExcludedFaulty, p.mendFault(standby, fault)
			link.Message += fmt.Sprintf("; gateway %s can't take over: %s", standby, fault)
		}
	}
	p.add(link)
}

// showsGateway reports whether a condition Announced shows that a gateway has claimed the shard of an address, whether
// or not the Service has endpoints. The condition is nil if there is none.
func showsGateway(c *metav1.Condition, a netip.Addr) bool {
	return c != nil && (c.Status == metav1.ConditionTrue ||
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
		if fault := p.fault(name, d.Spec.PhysicalNetwork); fault != "" {
			p.broken(LinkGateway, name, v1alpha1.ReasonNoActiveGateway, fmt.Sprintf("no gateway has claimed shard %d; node "+
				"%s: %s", s.Index, name, fault), p.mendFault(name, fault))
			return
		}
	}
	_, command, _ := p.mendChange("", "ovn-northd")
	p.broken(LinkGateway, d.Name, v1alpha1.ReasonNoActiveGateway, fmt.Sprintf("no gateway has claimed shard %d, "+
		"although no guard of %s reports a fault: ovn-northd may not have translated its rows", s.Index, joined(s.Gateways)),
		command)
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

// fault returns what prevents a node from serving a network, or an empty string.
func (p *path) fault(node, network string) string {
	n := objects.Named(p.objects.Nodes, node)
	if n == nil {
		return ""
	}
	is := p.objects.Node(n, p.Now)
	switch {
	case is.Faults[network] != "":
		return is.Faults[network]
	case is.Faults[world.EveryNetwork] != "":
		return is.Faults[world.EveryNetwork]
	case p.hasAgents() && is.Agent != nil && is.Agent.Problem != "":
		return is.Agent.Problem
	}
	if s := p.stopped(node, controllerNames()...); s != nil {
		return "ovn-controller does not run: " + s.String()
	}
	return ""
}

// segment names the segment of an L2Domain. That it is the one on which clients look for the addresses is what the
// administrator says: nothing observes it.
func segment(d *v1alpha1.L2Domain) string {
	if d.Spec.VLAN == 0 {
		return d.Spec.PhysicalNetwork
	}
	return fmt.Sprintf("%s, VLAN %d", d.Spec.PhysicalNetwork, d.Spec.VLAN)
}
