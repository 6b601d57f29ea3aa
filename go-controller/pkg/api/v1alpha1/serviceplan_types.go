// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServicePlan is what the zones of a cluster with interconnect program for one Service. The controller writes it, and
// the agents of all nodes (ovnkube-slb node --enable-l2) read it; it is not meant for users. Its name is
// NAMESPACE.NAME of the Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=serviceplans,singular=serviceplan
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServicePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ServicePlanSpec `json:"spec"`
}

// ServicePlanList is a list of ServicePlans.
//
// +kubebuilder:object:root=true
type ServicePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServicePlan `json:"items"`
}

// ServicePlanSpec is the plan of a Service.
type ServicePlanSpec struct {
	// namespace is the namespace of the Service.
	//
	// +required
	Namespace string `json:"namespace"`

	// name is the name of the Service.
	//
	// +required
	Name string `json:"name"`

	// vips are the addresses of the Service that are to be announced, and their shards.
	//
	// +required
	// +listType=map
	// +listMapKey=address
	VIPs []PlannedVIP `json:"vips"`

	// listeners are the ports of the addresses. A listener without backends refuses connections.
	//
	// +optional
	// +listType=atomic
	Listeners []PlannedListener `json:"listeners,omitempty"`

	// sessionAffinity is the sessionAffinity of the Service: ClientIP or None. With ClientIP, all connections of a
	// client go to one backend for as long as the backends stay the same; there is no timeout. Unset means None.
	//
	// +optional
	// +kubebuilder:validation:Enum=ClientIP;None
	SessionAffinity string `json:"sessionAffinity,omitempty"`

	// keepConnections is whether connections continue when the shard moves to another gateway. Unset means true. False
	// has no effect with sessionAffinity ClientIP.
	//
	// +optional
	KeepConnections *bool `json:"keepConnections,omitempty"`

	// sourceRanges are the loadBalancerSourceRanges of the Service by IP family. All clients are admitted at the
	// addresses of a family that is not listed.
	//
	// +optional
	// +listType=map
	// +listMapKey=ipFamily
	SourceRanges []PlannedSourceRanges `json:"sourceRanges,omitempty"`
}

// SessionAffinityClientIP is the sessionAffinity of a ServicePlan that sends all connections of a client to one
// backend.
const SessionAffinityClientIP = "ClientIP"

// PlannedVIP is an address and its shard.
type PlannedVIP struct {
	// address is an IPv4 or IPv6 address.
	//
	// +required
	Address string `json:"address"`

	// l2Domain is the name of the L2Domain.
	//
	// +required
	L2Domain string `json:"l2Domain"`

	// shard is the index of the shard in status.shards of the L2Domain.
	//
	// +required
	Shard int32 `json:"shard"`

	// egressMAC is the MAC address of the host on the segment that translates connections that pods open to this address
	// (EgressService of OVN-Kubernetes), and that gets the replies to them. Unset if there is none.
	//
	// +optional
	EgressMAC string `json:"egressMAC,omitempty"`
}

// PlannedListener is one address, protocol and port with its backends.
type PlannedListener struct {
	// address is one of the addresses in vips.
	//
	// +required
	Address string `json:"address"`

	// protocol is TCP, UDP or SCTP.
	//
	// +required
	Protocol string `json:"protocol"`

	// port is the port of the Service.
	//
	// +required
	Port int32 `json:"port"`

	// backends take new connections. The position of a backend is its slot, which it keeps as long as it lives, so that
	// connections survive a failover. A backend may have several slots.
	//
	// +optional
	// +listType=atomic
	Backends []PlannedBackend `json:"backends,omitempty"`

	// draining are backends that keep their connections and take no new ones.
	//
	// +optional
	// +listType=atomic
	Draining []PlannedBackend `json:"draining,omitempty"`
}

// PlannedBackend is an endpoint and its node.
type PlannedBackend struct {
	// address is ADDRESS:PORT of the endpoint.
	//
	// +required
	Address string `json:"address"`

	// nodeName is the name of its node.
	//
	// +required
	NodeName string `json:"nodeName"`

	// hostNetwork is true if the address is the node's own, as with pods that have hostNetwork.
	//
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`
}

// PlannedSourceRanges are the clients that are admitted at the addresses of one IP family.
type PlannedSourceRanges struct {
	// ipFamily is IPv4 or IPv6.
	//
	// +required
	IPFamily string `json:"ipFamily"`

	// cidrs are the ranges of clients. None are admitted if there are none.
	//
	// +optional
	// +listType=atomic
	CIDRs []string `json:"cidrs,omitempty"`
}
