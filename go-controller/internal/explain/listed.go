// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// ReasonListedByOthers is the reason of Services whose address is in spec.externalIPs of another Service, with one of
// their ports. OVN-Kubernetes and kube-proxy serve that field of any Service, whoever has the address (CVE-2020-8554).
// If OVN-Kubernetes' flows for the address are what is wrong, the ports do not matter.
const ReasonListedByOthers = "ListedByOthers"

// listing is a Service that lists an address of another one in spec.externalIPs. port is a port that both have, if they
// have any.
type listing struct {
	by   world.Key
	addr netip.Addr
	port corev1.ServicePort
}

func (l listing) message() string {
	if l.port.Port == 0 {
		return fmt.Sprintf("%s: Service %s lists it in spec.externalIPs, too: OVN-Kubernetes has flows for the address "+
			"there that may keep its requests from OVN's port or router", l.addr, l.by)
	}
	return fmt.Sprintf("%s: Service %s lists it in spec.externalIPs, too, with port %s %d: the nodes may send requests "+
		"for the address there (CVE-2020-8554)", l.addr, l.by, l.port.Protocol, l.port.Port)
}

func (l listing) command() string {
	return printable.Command("kubectl -n %s get service %s -o yaml", l.by.Namespace, l.by.Name)
}

// listedByOthers returns the first listing of an address of each Service of ours, in the order of the Services that
// list them.
func (p *path) listedByOthers() map[world.Key]listing {
	holders := map[netip.Addr][]*world.Service{}
	for _, s := range p.world.Services {
		for _, a := range slices.Concat(s.Given, s.HeldExternalIPs) {
			holders[a] = append(holders[a], s)
		}
	}
	found, wrongFlows := map[world.Key]listing{}, p.wrongFlows()
	for _, other := range sorted(p.objects.Services) {
		if len(other.Spec.ExternalIPs) == 0 {
			continue
		}
		by := world.Key{Namespace: other.Namespace, Name: other.Name}
		ports := map[portID]corev1.ServicePort{}
		for _, o := range slices.Backward(other.Spec.Ports) { // the first one of a number stays
			ports[portID{string(o.Protocol), o.Port}] = o
		}
		// A tenant may list an address any number of times, and the API server admits that. Whether a Service has one of
		// the ports does not depend on the address.
		seen, compared := map[netip.Addr]bool{}, map[world.Key]bool{}
		for _, text := range other.Spec.ExternalIPs {
			a := convert.ParseExternalIP(text)
			if !a.IsValid() || seen[a] {
				continue
			}
			seen[a] = true
			have := holders[a]
			if slices.ContainsFunc(have, func(s *world.Service) bool { return s.Key == by }) {
				continue
			}
			for _, s := range have {
				if _, again := found[s.Key]; again || compared[s.Key] {
					continue
				}
				compared[s.Key] = true
				if port, both := commonPort(s, ports); both || wrongFlows[s.Key] {
					found[s.Key] = listing{by, a, port}
				}
			}
		}
	}
	return found
}

// wrongFlows returns the Services whose flows of OVN-Kubernetes, or beside them, are wrong according to their status.
func (p *path) wrongFlows() map[world.Key]bool {
	wrong := map[world.Key]bool{}
	for _, s := range p.objects.Services {
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced)
		if c != nil && (c.Reason == v1alpha1.ReasonStaleFlow || c.Reason == v1alpha1.ReasonMisplacedFlow) {
			wrong[world.Key{Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
	return wrong
}

// portID identifies a port of a Service.
type portID struct {
	protocol string
	port     int32
}

// commonPort returns the first port of a Service that is among others.
func commonPort(s *world.Service, others map[portID]corev1.ServicePort) (corev1.ServicePort, bool) {
	for _, port := range s.Ports {
		if o, both := others[portID{string(port.Protocol), int32(port.Port)}]; both {
			return o, true
		}
	}
	return corev1.ServicePort{}, false
}

// addListed adds a warning if another Service lists an address of this one, as far as the Services have been read.
func (p *path) addListed() {
	if l, ok := p.listed[p.Service]; ok {
		p.add(Link{Name: LinkAddress, Object: l.addr.String(), State: Warning, Reason: ReasonListedByOthers,
			Message: l.message(), Command: l.command()})
	}
}

// serveListed returns the command that lets the pool of an address in spec.externalIPs serve such addresses. It is
// empty if all pools of such addresses do, or if they were not read.
func (p *path) serveListed() string {
	for _, a := range p.service.ExternalIPs {
		name := p.allocation.PoolOf(a)
		if pool := objects.Named(p.objects.Pools, name); pool != nil && !pool.Spec.ExternalIPs &&
			!slices.Contains(p.addrs(), a) {
			return printable.Command("kubectl patch ipaddresspools.slb.k8s.ovn.org %s "+
				`--type=merge -p '{"spec":{"externalIPs":true}}'`, name)
		}
	}
	return ""
}
