// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Reasons of clients and endpoints.
const (
	ReasonClientNotAdmitted = "ClientNotAdmitted"
	ReasonNoNextHop         = "NoNextHop"
	ReasonEndpointsNotReady = "EndpointsNotReady"
	ReasonNoEndpointPort    = "NoEndpointPort"
)

// addClients adds which clients are admitted.
func (p *path) addClients() {
	ranges, from := p.service.SourceRanges, p.From.Unmap()
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = r.String()
	}
	link := Link{Name: LinkClients, State: OK, Message: "all clients are admitted"}
	if from.IsValid() {
		link.Object, link.Message = from.String(), "the client is admitted"
	} else if len(ranges) > 0 {
		link.Message = "only clients of " + joined(texts) + " are admitted; --from ADDRESS checks one"
		if f := p.familyWithoutRange(); f != 0 {
			link.State, link.Reason = Warning, ReasonClientNotAdmitted
			link.Message += fmt.Sprintf("; no client is admitted over %s, of which spec.loadBalancerSourceRanges has no "+
				"range", f)
		}
	}
	bits := 128
	if from.Is4() {
		bits = 32
	}
	switch {
	case from.IsValid() && !slices.ContainsFunc(p.addrs(), func(a netip.Addr) bool { return a.Is4() == from.Is4() }):
		link.State, link.Reason = Broken, v1alpha1.ReasonFamilyUnavailable
		link.Message = fmt.Sprintf("the client has an %s address, and the Service has none", world.FamilyOf(from))
		link.Command = p.kubectl("patch service", p.object.Name, `-p '{"spec":{"ipFamilyPolicy":"PreferDualStack"}}'`)
	case from.IsValid() && len(ranges) > 0 &&
		!slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.IsValid() && r.Contains(from) }):
		link.State, link.Reason = Broken, ReasonClientNotAdmitted
		link.Message = fmt.Sprintf("the client is in none of spec.loadBalancerSourceRanges: %s", joined(texts))
		link.Command = p.kubectl("patch service", p.object.Name, fmt.Sprintf(
			`--type=json -p '[{"op":"add","path":"/spec/loadBalancerSourceRanges/-","value":"%s/%d"}]'`, from, bits))
	case from.IsValid() && p.withoutNextHop(from) != "":
		domain := p.withoutNextHop(from)
		link.State, link.Reason = Broken, ReasonNoNextHop
		link.Message = fmt.Sprintf("the client is not on the segment of L2Domain %s, and its subnet has no gateway, so "+
			"replies find no way to it", domain)
		link.Command = "kubectl edit l2domain " + domain + "   # spec.subnets[].gateway"
	case from.IsValid() && p.unread("l2domains", "ipaddresspools"):
		link = notRead(LinkClients, link.Object, "the client is admitted; without L2Domains and IPAddressPools it is not "+
			"known whether replies find a way to it")
	}
	p.add(link)
}

// familyWithoutRange returns a family of the Service's addresses of which no client is admitted; 0 if there is none.
func (p *path) familyWithoutRange() world.Family {
	for _, a := range p.addrs() {
		if !slices.ContainsFunc(p.service.SourceRanges, func(r netip.Prefix) bool {
			return r.IsValid() && r.Addr().Is4() == a.Is4()
		}) {
			return world.FamilyOf(a)
		}
	}
	return 0
}

// withoutNextHop returns the L2Domain whose gateways have no route to a client; empty if there is none.
func (p *path) withoutNextHop(from netip.Addr) string {
	for _, a := range p.addrs() {
		id, ok := p.layout.ConfiguredShardOf(p.allocation.PoolOf(a), a)
		d := objects.Named(p.objects.Domains, id.Domain)
		if !ok || d == nil || a.Is4() != from.Is4() || p.world.Cluster.OpenShiftSDN ||
			slices.ContainsFunc(d.Spec.Subnets, func(s v1alpha1.Subnet) bool { return contains(s.CIDR, from) }) {
			continue
		}
		for _, s := range d.Spec.Subnets {
			if contains(s.CIDR, a) && s.Gateway == "" {
				return d.Name
			}
		}
	}
	return ""
}

// addEndpoints adds the endpoints that take connections.
func (p *path) addEndpoints() {
	counts, nodes := p.countEndpoints()
	total, taking := counts.sum()
	object := strings.Join(slices.Sorted(maps.Keys(nodes)), ", ")
	selector := labels.Set(p.object.Spec.Selector).String()
	pods := p.kubectl("get pods -o wide -l", selector)
	switch c := p.verdict(v1alpha1.ReasonNoEndpoints); {
	case p.unread("endpointslices") && c == nil:
		p.add(notRead(LinkEndpoints, "", "no EndpointSlice could be read, so it is not known whether an endpoint takes "+
			"connections"))
	case p.unread("endpointslices"):
		p.broken(LinkEndpoints, "", c.Reason, c.Message, pods)
	case total == 0 && selector == "":
		p.broken(LinkEndpoints, "", v1alpha1.ReasonNoEndpoints, "the Service has no spec.selector and no EndpointSlice has "+
			"endpoints of it", p.kubectl("get endpointslices -l kubernetes.io/service-name="+p.object.Name))
	case total == 0:
		p.broken(LinkEndpoints, "", v1alpha1.ReasonNoEndpoints, "no Pod with an address has the labels of spec.selector: "+
			selector, pods)
	case taking == 0 && p.lacksPorts():
		p.broken(LinkEndpoints, "", ReasonNoEndpointPort, fmt.Sprintf("%s, but no EndpointSlice has a port of the Service: "+
			"no container has the name in targetPort", counts.format(familyCount.all)),
			p.kubectl("get service", p.object.Name, "-o jsonpath={.spec.ports}"))
	case taking == 0:
		p.broken(LinkEndpoints, "", ReasonEndpointsNotReady, counts.format(familyCount.all)+", and none is ready",
			p.kubectl("describe pods -l", selector))
	case c != nil:
		p.broken(LinkEndpoints, object, c.Reason, c.Message, pods)
	default:
		p.addTaking(object, counts.format(familyCount.taken)+" ready", nodes)
	}
}

// familyCount is the number of endpoints of an address family, and of those that take connections on at least one port.
type familyCount struct {
	family        world.Family
	total, taking int
}

func (c familyCount) all(noun string) string { return world.Count(c.total, noun) }

func (c familyCount) taken(noun string) string {
	return fmt.Sprintf("%d of %s", c.taking, world.Count(c.total, noun))
}

// endpointCounts are those of the families of the Service's addresses.
type endpointCounts []familyCount

func (counts endpointCounts) sum() (total, taking int) {
	for _, c := range counts {
		total, taking = total+c.total, taking+c.taking
	}
	return total, taking
}

// format returns the text of a count. A Pod with addresses of both families is an endpoint of each of them: the text
// names the families only if they differ.
func (counts endpointCounts) format(text func(c familyCount, noun string) string) string {
	var texts []string
	same := true
	for _, c := range counts {
		texts = append(texts, text(c, c.family.String()+" endpoint"))
		same = same && c.total == counts[0].total && c.taking == counts[0].taking
	}
	if same {
		return text(counts[0], "endpoint")
	}
	return strings.Join(texts, " and ")
}

// addTaking adds endpoints that take connections, unless their nodes do not work.
func (p *path) addTaking(object, message string, nodes map[string]bool) {
	link := Link{Name: LinkEndpoints, Object: object, State: OK, Message: message}
	var without []string
	fault := ""
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if f := p.fault(name, world.EveryNetwork); f != "" {
			without, fault = append(without, name), f
		}
	}
	if len(without) > 0 && p.layer2 {
		link.State, link.Reason = Warning, v1alpha1.ExcludedFaulty
		if len(without) == len(nodes) {
			link.State = Broken
		}
		link.Message += fmt.Sprintf("; new connections to those on node %s get no reply: %s", joined(without), fault)
		link.Command = p.mendFault(without[0], fault)
	}
	p.add(link)
}

// countEndpoints returns the numbers of endpoints, and the nodes of those that take connections.
func (p *path) countEndpoints() (counts endpointCounts, nodes map[string]bool) {
	nodes = map[string]bool{}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		if !slices.ContainsFunc(p.addrs(), func(a netip.Addr) bool { return world.FamilyOf(a) == f }) {
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
		for _, port := range p.service.Ports {
			for addr, e := range plan.Endpoints(p.service, f, port) {
				taking[addr.Addr()] = true
				if e.Node != "" {
					nodes[e.Node] = true
				}
			}
		}
		counts = append(counts, familyCount{f, len(all), len(taking)})
	}
	return counts, nodes
}

// lacksPorts reports whether no EndpointSlice with endpoints has a port of the Service.
func (p *path) lacksPorts() bool {
	for _, slice := range p.service.Slices {
		for _, port := range p.service.Ports {
			if len(slice.Endpoints) > 0 && slices.ContainsFunc(slice.Ports, func(o world.Port) bool {
				return o.Name == port.Name && o.Protocol == port.Protocol
			}) {
				return false
			}
		}
	}
	return true
}
