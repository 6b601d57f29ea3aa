// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Reasons of endpoints.
const (
	ReasonEndpointsNotReady = "EndpointsNotReady"
	ReasonNoEndpointPort    = "NoEndpointPort"
)

// addEndpoints adds the endpoints that take connections.
func (p *path) addEndpoints() {
	counts, nodes := p.countEndpoints()
	selector := labels.Set(p.object.Spec.Selector).String()
	pods := p.kubectl("get pods -o wide -l %s", selector)
	idle := counts.idle()
	served := slices.DeleteFunc(p.asked(), func(a netip.Addr) bool {
		return slices.ContainsFunc(idle, func(c familyCount) bool { return c.family == world.FamilyOf(a) })
	})
	_, beyond := p.beyondTunnels(nodes)
	switch c := p.verdict(v1alpha1.ReasonNoEndpoints); {
	case p.unread("endpointslices") && c == nil:
		p.add(notRead(LinkEndpoints, "", "no EndpointSlice could be read, so it is not known whether an endpoint takes "+
			"connections"))
	case p.unread("endpointslices"):
		p.broken(LinkEndpoints, "", c.Reason, c.Message, pods)
	case len(served) == 0:
		reason, message, command := p.whyIdle(counts)
		p.broken(LinkEndpoints, "", reason, message, command)
	case c != nil && p.concerns(c, served) && !beyond:
		p.broken(LinkEndpoints, strings.Join(slices.Sorted(maps.Keys(nodes)), ", "), c.Reason, c.Message, pods)
	default:
		p.addTaking(counts, nodes)
	}
}

// whyIdle returns why none of these endpoints takes connections, and what to do about it.
func (p *path) whyIdle(counts endpointCounts) (reason, message, command string) {
	total, selector := 0, labels.Set(p.object.Spec.Selector).String()
	for _, c := range counts {
		total += c.total
	}
	list := p.kubectl("get endpointslices -l kubernetes.io/service-name=%s", p.object.Name)
	switch {
	case total == 0 && p.hasEndpoints():
		family := counts[0].family
		return v1alpha1.ReasonNoEndpoints, fmt.Sprintf("no EndpointSlice of the Service has an %s endpoint, as if its Pods "+
			"had no %s address", family, family), list
	case total == 0 && selector == "":
		return v1alpha1.ReasonNoEndpoints, "the Service has no spec.selector and no EndpointSlice has endpoints of it", list
	case total == 0:
		return v1alpha1.ReasonNoEndpoints, "no Pod with an address has the labels of spec.selector: " + selector,
			p.kubectl("get pods -o wide --show-labels")
	case len(p.portsWithoutSlice(counts)) == len(p.service.Ports):
		return ReasonNoEndpointPort, counts.format(familyCount.all) + ", but no EndpointSlice has a port of the Service: " +
			"no container has the name in targetPort", p.portNames(p.portsWithoutSlice(counts))
	}
	if dead := p.deadNodesOfEndpoints(); len(dead) > 0 {
		return v1alpha1.ReasonNodeSilent, fmt.Sprintf("%s, and none is ready: node %s, which has some or all of them, %s",
			counts.format(familyCount.all), joined(dead), mayBeDead), lookAt(dead[0])
	}
	return ReasonEndpointsNotReady, counts.format(familyCount.all) + ", and none is ready",
		p.kubectl("describe pods -l %s", selector)
}

// deadNodesOfEndpoints returns the nodes with endpoints, ready or not, that may be dead.
func (p *path) deadNodesOfEndpoints() []string {
	dead := map[string]bool{}
	for _, s := range p.service.Slices {
		for i := range s.Endpoints {
			if name := s.Endpoints[i].Node; name != "" && p.unreachable(name) {
				dead[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(dead))
}

// hasEndpoints reports whether the Service has endpoints, of any family.
func (p *path) hasEndpoints() bool {
	return slices.ContainsFunc(p.service.Slices, func(s *world.Slice) bool { return len(s.Endpoints) > 0 })
}

// familyCount is the number of endpoints of an address family, and of those that take connections on at least one port.
type familyCount struct {
	family        world.Family
	total, taking int
	// both is set if the Service has addresses of both families.
	both bool
}

func (c familyCount) all(noun string) string { return world.Count(c.total, noun) }

func (c familyCount) taken(noun string) string {
	return fmt.Sprintf("%d of %s", c.taking, world.Count(c.total, noun))
}

// endpointCounts are those of the families of the addresses that the question is about.
type endpointCounts []familyCount

// idle returns the families without an endpoint that takes connections.
func (counts endpointCounts) idle() endpointCounts {
	return slices.DeleteFunc(slices.Clone(counts), func(c familyCount) bool { return c.taking > 0 })
}

// format returns the text of a count. A Pod with addresses of both families is an endpoint of each of them: the text
// names the families only if they differ, or if it is about one of them.
func (counts endpointCounts) format(text func(c familyCount, noun string) string) string {
	var texts []string
	same := true
	for _, c := range counts {
		texts = append(texts, text(c, c.family.String()+" endpoint"))
		same = same && c.total == counts[0].total && c.taking == counts[0].taking
	}
	if same && (len(counts) > 1 || !counts[0].both) {
		return text(counts[0], "endpoint")
	}
	return strings.Join(texts, " and ")
}

// addTaking adds endpoints that take connections, unless their nodes do not work. A family of which no endpoint takes
// connections is a weakness: clients of the other reach the Service.
func (p *path) addTaking(counts endpointCounts, nodes map[string]bool) {
	link := Link{Name: LinkEndpoints, Object: strings.Join(slices.Sorted(maps.Keys(nodes)), ", "), State: OK,
		Message: counts.format(familyCount.taken) + " ready"}
	if idle := counts.idle(); len(idle) > 0 {
		var why string
		link.State = Warning
		link.Reason, why, link.Command = p.whyIdle(idle)
		link.Message += fmt.Sprintf("; the Service is not reachable over %s: %s", idle[0].family, why)
	}
	if missing := p.portsWithoutSlice(counts); len(missing) > 0 {
		link.State, link.Reason = Warning, ReasonNoEndpointPort
		link.Message += "; " + lacksPorts(missing)
		link.Command = p.portNames(missing)
	}
	var without, dead, unanswered, silent, unchanged []string
	var agent *stopped
	var fault world.Fault
	beyond, _ := p.beyondTunnels(nodes)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		switch f := p.fault(name, world.EveryNetwork); {
		case beyond[name] == name: // addBeyondTunnels says so, and why.
		case p.unreachable(name):
			dead = append(dead, name)
		case len(p.byDomain) == 0 && p.unanswered(name) != "":
			unanswered = append(unanswered, name)
		case p.silentSince(name) != "":
			silent = append(silent, name)
		case f.Message != "":
			without, fault = append(without, name), f
		default:
			if s := p.stoppedAgent(name); s != nil {
				unchanged, agent = append(unchanged, name), s
			}
		}
	}
	if len(unchanged) > 0 {
		link.State, link.Reason, link.Command = Warning, v1alpha1.ReasonNodeSilent, agent.command()
		link.Message += fmt.Sprintf("; connections to those on node %s fail%s: %s", joined(unchanged), ifNewer, agent)
	}
	if len(dead) > 0 {
		link.State, link.Reason = Warning, v1alpha1.ReasonNodeSilent
		if len(dead) == len(nodes) {
			link.State = Unknown
		}
		link.Message += fmt.Sprintf("; connections to those on node %s fail if it is dead: its kubelet has stopped "+
			"reporting", joined(dead))
		link.Command = lookAt(dead[0])
	}
	if len(unanswered) > 0 {
		link.State, link.Reason, link.Command = Warning, v1alpha1.ReasonNodeSilent, lookAt(unanswered[0])
		if len(unanswered) == len(nodes) {
			link.State = Unknown
		}
		link.Message += fmt.Sprintf("; connections to those on node %s fail if it is dead: %s", joined(unanswered),
			p.unanswered(unanswered[0]))
	}
	if len(silent) > 0 {
		link.State, link.Reason = Warning, v1alpha1.ReasonNodeSilent
		link.Message += fmt.Sprintf("; connections to those on node %s fail if it is dead or cut off: %s", joined(silent),
			p.silentSince(silent[0]))
		link.Command = p.ownPods(silent[0])
	}
	if len(without) > 0 {
		// What a route brings to a node is served by OVN-Kubernetes: only layer 2 needs what the guard looks at.
		all, outcome := Unknown, "may get no reply"
		if p.layer2 {
			all, outcome = Broken, "get no reply"
		}
		link.State, link.Reason = Warning, v1alpha1.ExcludedFaulty
		if len(without) == len(nodes) {
			link.State = all
		}
		link.Message += fmt.Sprintf("; new connections to those on node %s %s: %s", joined(without), outcome, fault.Message)
		link.Command = p.mendFault(without[0], fault)
	}
	p.addBeyondTunnels(&link, nodes)
	p.addLagging(&link, nodes)
	p.add(link)
}

// stoppedAgent returns our own container on a node if it does not work, with interconnect: an endpoint on the node
// takes connections only if the zone has it and the Service already. It returns nil if nothing shows that, for active
// gateways, of which the link to the dataplane says so, and if the controller knows more.
func (p *path) stoppedAgent(node string) *stopped {
	n := objects.Named(p.objects.Nodes, node)
	if n == nil || !p.layer2 || !p.hasAgents() || lags(p.announced) || p.objects.Node(n, p.Now).Agent == nil ||
		slices.ContainsFunc(p.gateways(), func(g *world.Node) bool { return g.Name == node }) {
		return nil
	}
	return p.stoppedDaemon(node)
}

// countEndpoints returns the numbers of endpoints, and the nodes of those that take connections.
func (p *path) countEndpoints() (counts endpointCounts, nodes map[string]bool) {
	nodes = map[string]bool{}
	of := func(addrs []netip.Addr, f world.Family) bool {
		return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return world.FamilyOf(a) == f })
	}
	both := of(p.addrs(), world.IPv4) && of(p.addrs(), world.IPv6)
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		if !of(p.asked(), f) {
			continue
		}
		all, taking := map[netip.Addr]bool{}, map[netip.Addr]bool{}
		for _, slice := range p.service.Slices {
			for i := range slice.Endpoints {
				if slice.Family == f {
					all[slice.Endpoints[i].Addr] = true
				}
			}
		}
		for addr, e := range plan.Endpoints(p.service, f) {
			taking[addr.Addr()] = true
			if e.Node != "" {
				nodes[e.Node] = true
			}
		}
		counts = append(counts, familyCount{f, len(all), len(taking), both})
	}
	return counts, nodes
}

// lacksPorts is the message about ports that no EndpointSlice has.
func lacksPorts(missing []string) string {
	return fmt.Sprintf("no EndpointSlice has port %s of the Service: no container has the name in targetPort",
		joined(missing))
}

// portsWithoutSlice returns the ports of the Service that no EndpointSlice with endpoints of these families has.
func (p *path) portsWithoutSlice(counts endpointCounts) (missing []string) {
	type id struct {
		name     string
		protocol world.Protocol
	}
	has := map[id]bool{}
	for _, slice := range p.service.Slices {
		if len(slice.Endpoints) > 0 &&
			slices.ContainsFunc(counts, func(c familyCount) bool { return c.family == slice.Family }) {
			for _, port := range slice.Ports {
				has[id{port.Name, port.Protocol}] = true
			}
		}
	}
	for _, port := range p.service.Ports {
		if !has[id{port.Name, port.Protocol}] {
			missing = append(missing, fmt.Sprintf("%d/%s", port.Port, port.Protocol))
		}
	}
	return missing
}

// portNames returns the command that shows the names that the containers of the Service have for their ports, and those
// in targetPort of the ports that no EndpointSlice has. Without a selector, others write the EndpointSlices.
func (p *path) portNames(missing []string) string {
	var wanted []string
	for _, port := range p.object.Spec.Ports {
		id := fmt.Sprintf("%d/%s", port.Port, cmp.Or(port.Protocol, corev1.ProtocolTCP))
		if name := port.TargetPort.StrVal; name != "" && slices.Contains(missing, id) && !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	if len(p.object.Spec.Selector) == 0 || len(wanted) == 0 {
		return p.kubectl("get service %s -o jsonpath={.spec.ports}", p.object.Name)
	}
	return p.kubectl("get pods -l %s -o 'custom-columns=POD:.metadata.name,PORTS:.spec.containers[*].ports[*].name'   "+
		"# spec.ports[].targetPort of the Service: %s", labels.Set(p.object.Spec.Selector).String(), joined(wanted))
}
