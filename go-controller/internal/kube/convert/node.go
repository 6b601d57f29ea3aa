// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Annotations that OVN-Kubernetes writes on Nodes.
const (
	annotationChassis   = "k8s.ovn.org/node-chassis-id"
	annotationHostCIDRs = "k8s.ovn.org/host-cidrs"
	annotationGateway   = "k8s.ovn.org/l3-gateway-config"
	annotationZone      = "k8s.ovn.org/zone-name"
	// Subnets of pods by network: {"default":["10.244.1.0/24","fd00:10:244:1::/64"]}. A single subnet may be a string.
	annotationSubnets = "k8s.ovn.org/node-subnets"
	// The address of the node's zone on the transit switch, by family: {"ipv4":"100.88.0.2/16","ipv6":"fd97::2/64"}.
	annotationTransit = "k8s.ovn.org/node-transit-switch-port-ifaddr"
	// Subnets by family: {"ipv4":"169.254.169.0/29","ipv6":"fd69::/125"}.
	annotationMasquerade = "k8s.ovn.org/node-masquerade-subnet"
)

// masqueradeToOVN is the index, in its masquerade subnet, of the address that a node routes to OVN through its
// management port.
const masqueradeToOVN = 3

// OpenShift's machine config operator announces a reboot by desiredDrain, which is drain-<hash> from before the first
// Pod is evicted until the node is back, then uncordon-<hash>. (lastAppliedDrain follows as soon as the Pods are gone,
// which is before the reboot.)
const (
	annotationMachineConfigDrain = "machineconfiguration.openshift.io/desiredDrain"
	machineConfigDrains          = "drain-"
)

// nodeShutdown is in the message of the condition Ready, which is False, while a kubelet delays the shutdown of its
// node until the Pods have ended (KEP-2000, pkg/kubelet/nodeshutdown). It is no failure: that kubelet works and says
// so.
const nodeShutdown = "node is shutting down"

// DefaultDrainTaints returns the keys of taints by which other components announce a node's outage: Kubernetes
// (KEP-2268), medik8s' node maintenance operator, and the cluster autoscaler.
func DefaultDrainTaints() []string {
	return []string{corev1.TaintNodeOutOfService, "medik8s.io/drain", "ToBeDeletedByClusterAutoscaler"}
}

// Node converts a Node. A cordon alone (spec.unschedulable) is not a signal to drain: it does not announce an outage.
func Node(n *corev1.Node, o Options) *world.Node {
	links, gateways := nodeLinks(n), nodeGateways(n)
	own := gateways["default"]
	out := &world.Node{
		Name:          n.Name,
		Created:       n.CreationTimestamp.Time,
		Hostname:      n.Labels[corev1.LabelHostname],
		Chassis:       chassis(n),
		Zone:          zone(n),
		Addrs:         nodeAddrs(n, links),
		Links:         withSubnet(links),
		PodSubnets:    podSubnets(n),
		Transit:       transit(n),
		Hosts:         hosts(n),
		NextHops:      nextHops(gateways),
		GatewayBridge: Truncate(own.bridge(n.Name), maxForeignText),
		SharedGateway: own.Mode == "shared",
		External:      external(n, own),
		GatewayMAC:    parseHostMAC(own.MAC),
		Deleting:      n.DeletionTimestamp != nil,
		Draining:      draining(n, o.DrainTaints),
		NetworkUnavailable: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue
		}),
		Unreachable: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
		}),
	}
	if o.OpenShiftSDN {
		out.Chassis, out.Kernel = n.Name, kernel(n)
	}
	return out
}

// HasChassis reports whether OVN runs on a node.
func HasChassis(n *corev1.Node) bool { return chassis(n) != "" }

// chassis returns the system-id of a node, or an empty string if the annotation is none: a kubelet can write any text
// into its Node, and this one becomes part of rows in the databases of all zones.
func chassis(n *corev1.Node) string {
	id := n.Annotations[annotationChassis]
	if len(id) > maxForeignText || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return id
}

// annotationText returns the beginning of an annotation of a node.
func annotationText(n *corev1.Node, name string) string {
	return Truncate(n.Annotations[name], maxForeignText)
}

// parseAddr parses an address of a node or an endpoint. It returns false for one with an IPv6 zone, which has a meaning
// on the node only, and whose text can be anything.
func parseAddr(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	return a.Unmap(), err == nil && a.Zone() == ""
}

// zone returns the zone of a node. Since August 2026, OVN-Kubernetes supports only interconnect, with one zone per
// node, and no longer publishes zones. It still publishes the addresses on the transit switch, which it never did
// without interconnect.
func zone(n *corev1.Node) string {
	if name := annotationText(n, annotationZone); name != "" || n.Annotations[annotationTransit] == "" {
		return name
	}
	return n.Name
}

// kernel returns the addresses that the kernel of a node was assigned to hold.
func kernel(n *corev1.Node) *world.Kernel {
	k := &world.Kernel{Version: n.ResourceVersion}
	var err error
	if k.Held, err = sdn.Parse(n.Annotations[v1alpha1.AnnotationVIPs]); err != nil {
		k.Problem = fmt.Sprintf("annotation %s: %v", v1alpha1.AnnotationVIPs, err)
	}
	return k
}

// external returns the addresses of the node's gateway on the default network, at which OVN-Kubernetes receives traffic
// from outside, or else the addresses that the kubelet reports; the first of each family.
func external(n *corev1.Node, g gateway) []netip.Addr {
	var list []netip.Addr
	add := func(a netip.Addr) {
		if a = a.Unmap(); !slices.ContainsFunc(list, func(o netip.Addr) bool { return o.Is4() == a.Is4() }) {
			list = append(list, a)
		}
	}
	for _, text := range g.Addrs {
		if p, err := netip.ParsePrefix(text); err == nil {
			add(p.Addr())
		}
	}
	for _, a := range n.Status.Addresses {
		if addr, ok := parseAddr(a.Address); ok && a.Type == corev1.NodeInternalIP {
			add(addr)
		}
	}
	return list
}

// draining returns the signal that announces an outage, the first if there are several; empty if there is none.
func draining(n *corev1.Node, taints []string) string {
	if n.DeletionTimestamp != nil {
		return "metadata.deletionTimestamp " + n.DeletionTimestamp.UTC().Format(time.RFC3339)
	}
	// The presence of the label is sufficient, as for every load balancer provider; its value is ignored (KEP-1143).
	if value, ok := n.Labels[corev1.LabelNodeExcludeBalancers]; ok {
		return fmt.Sprintf("label %s=%s", corev1.LabelNodeExcludeBalancers, value)
	}
	if _, ok := n.Annotations[v1alpha1.AnnotationDrain]; ok {
		return fmt.Sprintf("annotation %s=%s", v1alpha1.AnnotationDrain, annotationText(n, v1alpha1.AnnotationDrain))
	}
	if value := annotationText(n, annotationMachineConfigDrain); strings.HasPrefix(value, machineConfigDrains) {
		return fmt.Sprintf("annotation %s=%s", annotationMachineConfigDrain, value)
	}
	for _, t := range n.Spec.Taints {
		if slices.Contains(taints, t.Key) {
			return "taint " + t.ToString()
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, nodeShutdown) {
			return "condition Ready: " + nodeShutdown
		}
	}
	return ""
}

// nodeLinks returns the addresses that OVN-Kubernetes found on the node's links, with the prefix lengths of their
// subnets. The annotation belongs to another component, so errors in it are not reported.
func nodeLinks(n *corev1.Node) []netip.Prefix {
	var cidrs []string
	if err := json.Unmarshal([]byte(n.Annotations[annotationHostCIDRs]), &cidrs); err != nil {
		return nil
	}
	var links []netip.Prefix
	for _, cidr := range cidrs {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			links = append(links, p)
		}
	}
	return links
}

// maxPodSubnets is how many pod subnets of a node count. OVN-Kubernetes gives it one of each family, and each
// costs all zones a route.
const maxPodSubnets = 8

// podSubnets returns the node's subnets on the default network, sorted and without duplicates. Two subnets of a family
// are supported, because OVN-Kubernetes may list them.
func podSubnets(n *corev1.Node) []netip.Prefix {
	var networks map[string]json.RawMessage
	if err := json.Unmarshal([]byte(n.Annotations[annotationSubnets]), &networks); err != nil {
		return nil
	}
	var texts []string
	if err := json.Unmarshal(networks["default"], &texts); err != nil {
		var one string
		if err := json.Unmarshal(networks["default"], &one); err != nil {
			return nil
		}
		texts = []string{one}
	}
	var subnets []netip.Prefix
	for _, text := range texts[:min(len(texts), maxPodSubnets)] {
		if p, err := netip.ParsePrefix(text); err == nil && !p.Addr().Is4In6() {
			subnets = append(subnets, p.Masked())
		}
	}
	slices.SortFunc(subnets, netip.Prefix.Compare)
	return slices.Compact(subnets)
}

// transit returns the addresses of the node's zone on the transit switch, sorted.
func transit(n *corev1.Node) []netip.Prefix {
	var texts map[string]string
	if err := json.Unmarshal([]byte(n.Annotations[annotationTransit]), &texts); err != nil {
		return nil
	}
	var out []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}

// nodeAddrs returns the addresses of the links and those that the kubelet reports, sorted and without duplicates.
func nodeAddrs(n *corev1.Node, links []netip.Prefix) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range n.Status.Addresses {
		if addr, ok := parseAddr(a.Address); ok {
			addrs = append(addrs, addr)
		}
	}
	for _, p := range links {
		addrs = append(addrs, p.Addr().Unmap())
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// hosts returns the addresses that the kubelet gives to pods with hostNetwork: the first of each family, preferably an
// internal one. It omits families for which OVN-Kubernetes provides no masquerade subnet.
func hosts(n *corev1.Node) []world.Host {
	var subnets map[string]string
	if err := json.Unmarshal([]byte(n.Annotations[annotationMasquerade]), &subnets); err != nil {
		return nil
	}
	masquerade := map[world.Family]netip.Addr{}
	for _, text := range subnets {
		if p, err := netip.ParsePrefix(text); err == nil {
			a := p.Masked().Addr()
			for range masqueradeToOVN {
				a = a.Next()
			}
			if p.Contains(a) {
				masquerade[world.FamilyOf(a)] = a
			}
		}
	}
	var out []world.Host
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			addr, ok := parseAddr(a.Address)
			if a.Type != kind || !ok {
				continue
			}
			if m, ok := masquerade[world.FamilyOf(addr)]; ok {
				delete(masquerade, world.FamilyOf(addr))
				out = append(out, world.Host{Addr: addr, Masquerade: m})
			}
		}
	}
	slices.SortFunc(out, func(a, b world.Host) int { return a.Addr.Compare(b.Addr) })
	return out
}

// gateway is OVN-Kubernetes' configuration of a node's gateway on one network.
type gateway struct {
	Mode   string `json:"mode"`
	Bridge string `json:"bridge-id"`
	// Port is <bridge>_<node>. Older releases name the bridge only here.
	Port string `json:"interface-id"`
	MAC  string `json:"mac-address"`
	// Addrs are in CIDR notation, with the prefix lengths of their subnets.
	Addrs    []string `json:"ip-addresses"`
	NextHops []string `json:"next-hops"`
}

// nodeGateways returns the gateways of a node by network. As in nodeLinks, errors in the annotation are ignored.
func nodeGateways(n *corev1.Node) map[string]gateway {
	var networks map[string]gateway
	if err := json.Unmarshal([]byte(n.Annotations[annotationGateway]), &networks); err != nil {
		return nil
	}
	return networks
}

// nextHops returns the next hops of all gateways, sorted and without duplicates.
func nextHops(gateways map[string]gateway) []netip.Addr {
	var hops []netip.Addr
	for _, g := range gateways {
		for _, text := range g.NextHops {
			if a, ok := parseAddr(text); ok {
				hops = append(hops, a)
			}
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	return slices.Compact(hops)
}

// bridge returns the bridge of a node's gateway, empty if there is none.
func (g *gateway) bridge(node string) string {
	return cmp.Or(g.Bridge, strings.TrimSuffix(g.Port, "_"+node))
}

// withSubnet returns the links sorted and without duplicates. It omits single addresses (/32 and /128), as used for
// virtual addresses, and IPv4-mapped ones.
func withSubnet(links []netip.Prefix) []netip.Prefix {
	links = slices.DeleteFunc(slices.Clone(links), func(p netip.Prefix) bool {
		return p.IsSingleIP() || p.Addr().Is4In6()
	})
	slices.SortFunc(links, netip.Prefix.Compare)
	return slices.Compact(links)
}
