// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPAdvertisement says which addresses are told to which peers, and how.
// Where several tell a peer the same prefix, it hears the union of their communities; of
// each other attribute counts what the oldest of those says that set it, and the
// condition of the others says so.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=bgpadvertisements,singular=bgpadvertisement,shortName=bgpadv,categories=slb
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.spec.ipAddressPools`
// +kubebuilder:printcolumn:name="Peers",type=string,JSONPath=`.spec.peers`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BGPAdvertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec BGPAdvertisementSpec `json:"spec,omitempty"`
	// +optional
	Status BGPAdvertisementStatus `json:"status,omitempty"`
}

// BGPAdvertisementList is a list of advertisements.
//
// +kubebuilder:object:root=true
type BGPAdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPAdvertisement `json:"items"`
}

// NextHop says where routers send the traffic of a route to.
//
// +kubebuilder:validation:Enum=Node;Gateway
type NextHop string

const (
	// NextHopNode is the node that tells the route.
	NextHopNode NextHop = "Node"
	// NextHopGateway is the active gateway of the L2Domain.
	NextHopGateway NextHop = "Gateway"
)

// BGPAdvertisementSpec describes the routes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceSelectors) || size(self.serviceSelectors) == 0 || ((!has(self.aggregationLength) || self.aggregationLength == 32) && (!has(self.aggregationLengthV6) || self.aggregationLengthV6 == 128))",message="aggregationLength: an aggregate would cover Services that serviceSelectors leave out"
// +kubebuilder:validation:XValidation:rule="!has(self.nextHop) || self.nextHop != 'Gateway' || ((!has(self.aggregationLength) || self.aggregationLength == 32) && (!has(self.aggregationLengthV6) || self.aggregationLengthV6 == 128))",message="nextHop: the addresses of an aggregate have several gateways"
type BGPAdvertisementSpec struct {
	// AggregationLength is the prefix length that IPv4 addresses are told with, 1
	// to 32. An address whose aggregate would reach beyond its pool is told by itself.
	// Default 32.
	//
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	AggregationLength *int32 `json:"aggregationLength,omitempty"`

	// AggregationLengthV6 is the prefix length that IPv6 addresses are told with, 1
	// to 128, likewise. Default 128.
	//
	// +optional
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	AggregationLengthV6 *int32 `json:"aggregationLengthV6,omitempty"`

	// LocalPref is LOCAL_PREF (RFC 4271 section 5.1.5), 0 to 4294967295, told to
	// internal peers only; the highest wins. Absent: the peer's default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	LocalPref *int64 `json:"localPref,omitempty"`

	// MED is MULTI_EXIT_DISC (RFC 4271 section 5.1.4), 0 to 4294967295; the lowest
	// wins. Absent: none is told.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	MED *int64 `json:"med,omitempty"`

	// ASPathPrepend is how many more times our AS number stands in the path, 0 to 16,
	// which makes the route less wanted. Default 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	ASPathPrepend int32 `json:"asPathPrepend,omitempty"`

	// NextHop of the routes: Node is the address of the node that tells them, where
	// OVN-Kubernetes takes the traffic. Gateway is the external address of the
	// gateways of the L2Domain that has the address: routers on its segment then send
	// to whoever is active there. Default Node.
	//
	// +optional
	// +kubebuilder:default=Node
	NextHop NextHop `json:"nextHop,omitempty"`

	// Communities of the routes: 65000:100 (RFC 1997), large:65000:1:2 (RFC 8092), a
	// well-known name (no-export, no-advertise, no-peer, blackhole,
	// graceful-shutdown), or an alias that a Community defines.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Communities []CommunityRef `json:"communities,omitempty"`

	// IPAddressPools are names of the pools told. With ipAddressPoolSelectors,
	// either match is enough; with neither, all pools.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	IPAddressPools []string `json:"ipAddressPools,omitempty"`

	// IPAddressPoolSelectors match labels of pools.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors,omitempty"`

	// NodeSelectors match labels of the nodes that tell; one match is enough. Absent:
	// every node.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`

	// ServiceSelectors match labels of the Services told; one match is enough.
	// Absent: every Service. Not together with aggregates.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`

	// Peers are names of the BGPPeers told. Absent: every peer.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Peers []string `json:"peers,omitempty"`
}

// BGPAdvertisementStatus is what the controller saw last.
type BGPAdvertisementStatus struct {
	// Conditions of the advertisement: Accepted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
