// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// EgressServices returns the resource of OVN-Kubernetes' EgressServices.
func EgressServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "egressservices"}
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
