// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// Reasons of a probe without a connection.
const (
	// ReasonRefused means that the connection was refused (RFC 9293 section 3.5.2).
	ReasonRefused = "Refused"
	// ReasonNoAnswer means that nothing answered in time.
	ReasonNoAnswer = "NoAnswer"
	// ReasonNoRoute means that the probing machine, or a router, has no way to the address.
	ReasonNoRoute = "NoRoute"
)

// Probe is what a machine observed when it opened a TCP connection to an address of the Service.
type Probe struct {
	To netip.AddrPort
	// From is the machine's own address, the zero Addr if it has none of the family.
	From netip.Addr
	// Reason is empty if the connection was established. Message is the error otherwise.
	Reason, Message string
}

// maxTargets bounds how many connections a probe opens.
const maxTargets = 16

// Targets returns the addresses and TCP ports of a Service that a probe connects to, at most 16: those that a question
// is about. UDP and SCTP have no answer that says whether a pod got what was sent, or need more than a socket.
func Targets(s *corev1.Service, q *Question) []netip.AddrPort {
	to := allTargets(s, q)
	return to[:min(maxTargets, len(to))]
}

func allTargets(s *corev1.Service, q *Question) (to []netip.AddrPort) {
	for _, a := range convert.Assigned(s) {
		if !q.about(a) {
			continue
		}
		for i := range s.Spec.Ports {
			if port := &s.Spec.Ports[i]; port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
				to = append(to, netip.AddrPortFrom(a, uint16(port.Port))) //nolint:gosec // 1 to 65535 by the API server
			}
		}
	}
	return to
}

// addProbes adds what was observed. It is the last link: what the cluster shows is the cause of what a client sees.
func (p *path) addProbes() {
	if p.Probes == nil {
		return
	}
	at := slices.IndexFunc(p.Probes, func(o Probe) bool { return o.Reason != "" })
	switch {
	case len(p.Probes) == 0:
		p.add(Link{Name: LinkProbe, Object: thisMachine, State: Unused,
			Message: "the Service has no address with a TCP port, and only those can be probed"})
	case at < 0:
		p.ok(LinkProbe, thisMachine, "connected to "+targets(p.Probes)+p.from(p.Probes[0]))
	default:
		o := p.Probes[at]
		failed := slices.DeleteFunc(slices.Clone(p.Probes), func(other Probe) bool { return other.Reason != o.Reason })
		message := fmt.Sprintf("no connection to %s%s: %s", targets(failed), p.from(o), o.Message)
		command := p.mendProbe(o)
		switch faulty := func(l Link) bool { return l.State == Broken || l.State == Unknown }; {
		case p.service != nil && o.From.IsValid() && !p.admits(o.From):
			message += "; spec.loadBalancerSourceRanges do not admit this machine"
			command = p.kubectl("get service %s -o jsonpath={.spec.loadBalancerSourceRanges}", p.Service.Name)
		case slices.ContainsFunc(p.links, func(l Link) bool { return l.Reason == ReasonNoEndpointPort }):
			message += "; see the warning about endpoints"
		case slices.ContainsFunc(p.links, faulty):
		case o.Reason == ReasonRefused:
			message += "; the cluster shows no fault: do the Pods listen on targetPort?"
		default:
			message += "; the cluster shows no fault, so look at the way from here to it, and at policies of " +
				"the cluster (AdminNetworkPolicy)"
		}
		p.broken(LinkProbe, thisMachine, o.Reason, message, command)
	}
}

const thisMachine = "this machine"

func (p *path) from(o Probe) string {
	if !o.From.IsValid() {
		return ""
	}
	return " from " + o.From.String()
}

func targets(probes []Probe) string {
	var list []string
	for _, o := range probes {
		list = append(list, o.To.String())
	}
	return strings.Join(list, ", ")
}

// mendProbe returns the command that shows more about a probe that failed.
func (p *path) mendProbe(o Probe) string {
	if o.Reason == ReasonRefused {
		return p.kubectl("get endpointslices -l kubernetes.io/service-name=%s", p.Service.Name)
	}
	then := "routers and firewalls on the way"
	if p.layer2 {
		then += ", and whether the L2Domain is on the segment of clients"
	}
	return printable.Command("ip route get %s   # on this machine; then "+then, o.To.Addr())
}

// answered reports whether all probes were answered.
func (q *Question) answered() bool {
	return len(q.Probes) > 0 && !slices.ContainsFunc(q.Probes, func(o Probe) bool { return o.Reason != "" })
}
