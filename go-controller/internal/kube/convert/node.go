// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Annotations that OVN-Kubernetes writes on Nodes.
const (
	annotationChassis   = "k8s.ovn.org/node-chassis-id"
	annotationHostCIDRs = "k8s.ovn.org/host-cidrs"
	annotationGateway   = "k8s.ovn.org/l3-gateway-config"
)

// Node reads a Node. Cordon alone (spec.unschedulable) is no signal to drain: it does not
// say that the node is about to go.
func Node(n *corev1.Node) *world.Node {
	return &world.Node{
		Name:     n.Name,
		Chassis:  n.Annotations[annotationChassis],
		Addrs:    nodeAddrs(n),
		NextHops: nextHops(n),
		Draining: draining(n),
	}
}

func draining(n *corev1.Node) string {
	if n.DeletionTimestamp != nil {
		return "metadata.deletionTimestamp " + n.DeletionTimestamp.UTC().Format(time.RFC3339)
	}
	// As for every load balancer provider the presence of the label counts, not its value (KEP-1143).
	if value, ok := n.Labels[corev1.LabelNodeExcludeBalancers]; ok {
		return fmt.Sprintf("label %s=%s", corev1.LabelNodeExcludeBalancers, value)
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return "taint " + t.ToString()
		}
	}
	return ""
}

// nodeAddrs are those that the kubelet tells and those that OVN-Kubernetes found on the
// node's links, sorted and distinct.
func nodeAddrs(n *corev1.Node) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil {
			addrs = append(addrs, addr.Unmap())
		}
	}
	var cidrs []string
	// The annotation is another component's: what it spoils there is not ours to report,
	// and the addresses of the status remain.
	if err := json.Unmarshal([]byte(n.Annotations[annotationHostCIDRs]), &cidrs); err == nil {
		for _, cidr := range cidrs {
			if p, err := netip.ParsePrefix(cidr); err == nil {
				addrs = append(addrs, p.Addr().Unmap())
			}
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// nextHops are those of the node's gateway as OVN-Kubernetes found them, sorted and
// distinct. As with the addresses, what is spoilt in its annotation is left out.
func nextHops(n *corev1.Node) []netip.Addr {
	var networks map[string]struct {
		NextHops []string `json:"next-hops"`
	}
	if err := json.Unmarshal([]byte(n.Annotations[annotationGateway]), &networks); err != nil {
		return nil
	}
	var hops []netip.Addr
	for _, network := range networks {
		for _, text := range network.NextHops {
			if a, err := netip.ParseAddr(text); err == nil {
				hops = append(hops, a.Unmap())
			}
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	return slices.Compact(hops)
}
