// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// closedPorts returns the ports of the endpoints to which no NetworkPolicy that may select the Pods admits a client, or
// any client if it is the zero Addr, with the port of the Service that leads to each. open reports whether there are
// others. A Pod may have a port for any name, so a name admits all ports of its protocol.
func (p *path) closedPorts(from netip.Addr) (closed []string, open bool) {
	var admitted []networkingv1.NetworkPolicyPort
	for _, policy := range p.objects.Policies {
		if may, _ := p.selects(policy); !may {
			continue
		}
		for i := range policy.Spec.Ingress {
			rule := &policy.Spec.Ingress[i]
			switch _, some := admitsClient(rule, from); {
			case some && len(rule.Ports) == 0:
				return nil, true
			case some:
				admitted = append(admitted, rule.Ports...)
			}
		}
	}
	for _, port := range p.targetPorts() {
		if slices.ContainsFunc(admitted, func(by networkingv1.NetworkPolicyPort) bool {
			return admitsPort(&by, port.service.Protocol, port.number)
		}) {
			open = true
		} else {
			closed = append(closed, fmt.Sprintf("%d/%s (targetPort of %d)", port.number, port.service.Protocol,
				port.service.Port))
		}
	}
	return closed, open
}

// targetPort is a port of a Service with the number that it has at endpoints.
type targetPort struct {
	service world.Port
	number  uint16
}

// targetPorts returns the ports of the Service, each with all numbers that endpoints of the families have that the
// question is about.
func (p *path) targetPorts() []targetPort {
	type id struct {
		name     string
		protocol world.Protocol
	}
	ports := map[id]world.Port{}
	for _, port := range p.service.Ports {
		ports[id{port.Name, port.Protocol}] = port
	}
	var list []targetPort
	seen := map[targetPort]bool{}
	for _, slice := range p.service.Slices {
		if len(slice.Endpoints) == 0 ||
			!slices.ContainsFunc(p.asked(), func(a netip.Addr) bool { return world.FamilyOf(a) == slice.Family }) {
			continue
		}
		for _, port := range slice.Ports {
			of, wanted := ports[id{port.Name, port.Protocol}]
			if t := (targetPort{of, port.Port}); wanted && !seen[t] {
				seen[t] = true
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, func(a, b targetPort) int {
		return cmp.Or(cmp.Compare(a.service.Port, b.service.Port), cmp.Compare(a.service.Protocol, b.service.Protocol),
			cmp.Compare(a.number, b.number))
	})
	return list
}

// admitsPort reports whether a port of a NetworkPolicy may be a port of a Pod.
func admitsPort(by *networkingv1.NetworkPolicyPort, protocol world.Protocol, port uint16) bool {
	of := world.TCP
	if by.Protocol != nil {
		of = world.Protocol(*by.Protocol)
	}
	switch {
	case of != protocol:
		return false
	case by.Port == nil || by.Port.Type == intstr.String:
		return true
	case by.EndPort != nil:
		return by.Port.IntVal <= int32(port) && int32(port) <= *by.EndPort
	}
	return by.Port.IntVal == int32(port)
}
