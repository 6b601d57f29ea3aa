// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ReasonNetworkPolicy is the reason if NetworkPolicies admit no client, or none to a port.
const ReasonNetworkPolicy = "NetworkPolicy"

// addPolicies adds whether NetworkPolicies admit clients to the endpoints. OVN-Kubernetes enforces them at the pods, so
// no status of a Service shows it. It is not known to be so, either: their labels are in no EndpointSlice, and pods in
// the network of their host are exempt.
func (p *path) addPolicies() {
	var surely, perhaps []string
	admitted, limited := false, false // by one of them: they add up
	from := p.clientAtPods()
	for _, policy := range p.objects.Policies {
		selects, certain := p.selects(policy)
		if !selects {
			continue
		}
		all, some := admits(policy, from)
		admitted, limited = admitted || all, limited || some
		if name := policy.Name; certain {
			surely = append(surely, name)
		} else {
			perhaps = append(perhaps, name)
		}
	}
	slices.Sort(surely)
	slices.Sort(perhaps)
	var closed []string
	open := false
	if len(surely) > 0 && limited && !admitted {
		closed, open = p.closedPorts(from)
	}
	list := p.kubectl("describe networkpolicies")
	switch {
	case admitted, len(surely)+len(perhaps) == 0:
	case len(surely) > 0 && !limited:
		p.add(Link{Name: LinkPolicies, Object: joined(surely), State: Unknown, Reason: ReasonNetworkPolicy, Command: list,
			Message: fmt.Sprintf("%s: the Pods of the Service are selected, and no %s is admitted "+
				"(spec.ingress[].from[].ipBlock)", ofKind("NetworkPolicy", "NetworkPolicies", surely), clientText(from))})
	case len(closed) > 0:
		link := Link{Name: LinkPolicies, Object: joined(surely), State: Warning, Reason: ReasonNetworkPolicy, Command: list,
			Message: fmt.Sprintf("%s: the Pods of the Service are selected, and no %s is admitted to their port %s: "+
				"spec.ingress[].ports are ports of Pods", ofKind("NetworkPolicy", "NetworkPolicies", surely),
				clientText(from), joined(closed))}
		if !open {
			link.State = Unknown
		}
		p.add(link)
	default:
		p.remark("%s may limit which clients reach the Pods of the Service, and on which ports: %s",
			ofKind("NetworkPolicy", "NetworkPolicies", slices.Concat(surely, perhaps)), list)
	}
}

// clientText names the clients that NetworkPolicies do not admit.
func clientText(from netip.Addr) string {
	if from.IsValid() {
		return "connection from " + from.String()
	}
	return "client outside of the cluster"
}

// ofKind returns names after their kind.
func ofKind(one, several string, names []string) string {
	if len(names) == 1 {
		return one + " " + names[0]
	}
	return several + " " + joined(names)
}

// selects reports whether a NetworkPolicy with ingress rules may select the Pods of the Service, and whether that is
// certain: Pods have the labels of spec.selector, and may have others.
func (p *path) selects(policy *networkingv1.NetworkPolicy) (may, certain bool) {
	types := policy.Spec.PolicyTypes
	if policy.Namespace != p.object.Namespace || len(p.object.Spec.Selector) == 0 ||
		len(types) > 0 && !slices.Contains(types, networkingv1.PolicyTypeIngress) {
		return false, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		return true, false // Unknown operators are those of a newer version.
	}
	have := labels.Set(p.object.Spec.Selector)
	requirements, _ := selector.Requirements()
	certain = true
	for _, r := range requirements {
		switch {
		case !have.Has(r.Key()):
			certain = false
		case !r.Matches(have):
			return false, false
		}
	}
	return true, certain
}

// clientAtPods returns the source that the Pods see of the client of the question; the zero Addr if it is not known.
// What routers send to nodes has an address of the node, unless the node has an endpoint and the policy is Local.
func (p *path) clientAtPods() netip.Addr {
	if p.world.Cluster.OpenShiftSDN ||
		p.object.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal && len(p.routed()) > 0 {
		return netip.Addr{}
	}
	return p.From.Unmap()
}

// admits reports whether a NetworkPolicy admits a client, or all clients if it is the zero Addr, to all ports, or to
// some ports or some clients. Selectors of Pods and namespaces select no client outside of the cluster.
func admits(policy *networkingv1.NetworkPolicy, from netip.Addr) (all, some bool) {
	for i := range policy.Spec.Ingress {
		everyone, anyone := admitsClient(&policy.Spec.Ingress[i], from)
		some = some || anyone
		all = all || everyone && len(policy.Spec.Ingress[i].Ports) == 0
	}
	return all, some
}

// admitsClient reports whether a rule admits a client, or all clients if it is the zero Addr, and whether it admits at
// least some.
func admitsClient(rule *networkingv1.NetworkPolicyIngressRule, from netip.Addr) (everyone, some bool) {
	everyone = len(rule.From) == 0
	for _, peer := range rule.From {
		contains := peer.IPBlock != nil && from.IsValid() && inBlock(peer.IPBlock, from)
		some = some || contains || peer.IPBlock != nil && !from.IsValid()
		everyone = everyone || contains
	}
	return everyone, some || everyone
}

// inBlock reports whether a block contains an address.
func inBlock(block *networkingv1.IPBlock, a netip.Addr) bool {
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(a)
	}
	return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}
