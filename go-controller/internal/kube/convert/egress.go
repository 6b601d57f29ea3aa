// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// EgressServices returns the resource of OVN-Kubernetes' EgressServices.
func EgressServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "egressservices"}
}

// EgressIPs returns the resource of OVN-Kubernetes' EgressIPs, which have no namespace.
func EgressIPs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "egressips"}
}

// maxEgressIPs is how many addresses of an EgressIP count. OVN-Kubernetes assigns each of them to another node.
const maxEgressIPs = 4096

// EgressIPAddrs returns the addresses of an EgressIP (spec.egressIPs), sorted and without duplicates, whether
// OVN-Kubernetes has assigned them to nodes or not. It omits what is no address.
func EgressIPAddrs(u *unstructured.Unstructured) []netip.Addr {
	spec, _ := u.Object["spec"].(map[string]any)
	texts, _ := spec["egressIPs"].([]any)
	addrs := make([]netip.Addr, 0, min(len(texts), maxEgressIPs))
	for _, v := range texts[:min(len(texts), maxEgressIPs)] {
		text, _ := v.(string)
		if a, ok := parseAddr(text); ok {
			addrs = append(addrs, a)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Clip(slices.Compact(addrs))
}

// sourceIPByLoadBalancer is the value of spec.sourceIPBy with which one host translates all connections. With
// "Network", each node translates those of its own pods to its own address, and status.host is none.
const sourceIPByLoadBalancer = "LoadBalancerIP"

// EgressHost returns the node whose host translates the connections of the pods of an EgressService to the address of
// its Service, which has the same name. It is empty if OVN-Kubernetes has selected none. translates reports whether a
// host is to do so.
//
// Only OVN-Kubernetes' control plane writes the status. It marks the node with a label as well, which is not read: a
// kubelet can write it to its own Node.
func EgressHost(u *unstructured.Unstructured) (host string, translates bool) {
	by, _, _ := unstructured.NestedString(u.Object, "spec", "sourceIPBy")
	host, _, _ = unstructured.NestedString(u.Object, "status", "host")
	if by != sourceIPByLoadBalancer {
		return "", false
	}
	return Bounded(host), true
}
