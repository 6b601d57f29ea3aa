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
	}
	p.add(link)
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
	total, taking, nodes := p.countEndpoints()
	object := strings.Join(slices.Sorted(maps.Keys(nodes)), ", ")
	selector := labels.Set(p.object.Spec.Selector).String()
	pods := p.kubectl("get pods -o wide -l", selector)
	switch c := p.verdict(v1alpha1.ReasonNoEndpoints); {
	case total == 0 && selector == "":
		p.broken(LinkEndpoints, "", v1alpha1.ReasonNoEndpoints, "the Service has no spec.selector and no EndpointSlice has "+
			"endpoints of it", p.kubectl("get endpointslices -l kubernetes.io/service-name="+p.object.Name))
	case total == 0:
		p.broken(LinkEndpoints, "", v1alpha1.ReasonNoEndpoints, "no Pod with an address has the labels of spec.selector: "+
			selector, pods)
	case taking == 0 && p.lacksPorts():
		p.broken(LinkEndpoints, "", ReasonNoEndpointPort, fmt.Sprintf("%s, but no EndpointSlice has a port of the Service: "+
			"no container has the name in targetPort", world.Count(total, "endpoint")),
			p.kubectl("get service", p.object.Name, "-o jsonpath={.spec.ports}"))
	case taking == 0:
		p.broken(LinkEndpoints, "", ReasonEndpointsNotReady, fmt.Sprintf("%s, and none is ready",
			world.Count(total, "endpoint")), p.kubectl("describe pods -l", selector))
	case c != nil:
		p.broken(LinkEndpoints, object, c.Reason, c.Message, pods)
	default:
		p.addTaking(object, fmt.Sprintf("%d of %s ready", taking, world.Count(total, "endpoint")), nodes)
	}
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

// countEndpoints returns the number of endpoints, of those that take connections on at least one port, and the nodes
// of the latter.
func (p *path) countEndpoints() (total, taking int, nodes map[string]bool) {
	nodes = map[string]bool{}
	every, takes := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	families := map[world.Family]bool{}
	for _, a := range p.addrs() {
		families[world.FamilyOf(a)] = true
	}
	for _, slice := range p.service.Slices {
		for i := range slice.Endpoints {
			if families[slice.Family] {
				every[slice.Endpoints[i].Addr] = true
			}
		}
	}
	for f := range families {
		for _, port := range p.service.Ports {
			for addr, e := range plan.Endpoints(p.service, f, port) {
				takes[addr.Addr()] = true
				if e.Node != "" {
					nodes[e.Node] = true
				}
			}
		}
	}
	return len(every), len(takes), nodes
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
