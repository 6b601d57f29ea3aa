// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPAdvertisement defines which addresses are advertised to which peers, and with which attributes. If several
// BGPAdvertisements advertise the same prefix to a peer, the route has the union of their communities. For every other
// attribute, the oldest BGPAdvertisement that sets it takes precedence, and the condition Accepted of the others
// reports this.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=bgpadvertisements,singular=bgpadvertisement,shortName=bgpadv,categories=slb
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.status.ipAddressPools`
// +kubebuilder:printcolumn:name="Peers",type=string,JSONPath=`.status.peers`
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

// BGPAdvertisementList is a list of BGPAdvertisements.
//
// +kubebuilder:object:root=true
type BGPAdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPAdvertisement `json:"items"`
}

// NextHop selects the next hop of a route.
//
// +kubebuilder:validation:Enum=Node;Gateway
type NextHop string

const (
	// NextHopNode is the node that advertises the route.
	NextHopNode NextHop = "Node"
	// NextHopGateway is the active gateway of the L2Domain.
	NextHopGateway NextHop = "Gateway"
)

// BGPAdvertisementSpec describes the routes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceSelectors) || size(self.serviceSelectors) == 0 || ((!has(self.aggregationLength) || self.aggregationLength == 32) && (!has(self.aggregationLengthV6) || self.aggregationLengthV6 == 128))",message="aggregationLength: an aggregate would cover Services that serviceSelectors leave out"
// +kubebuilder:validation:XValidation:rule="!has(self.nextHop) || self.nextHop != 'Gateway' || ((!has(self.aggregationLength) || self.aggregationLength == 32) && (!has(self.aggregationLengthV6) || self.aggregationLengthV6 == 128))",message="nextHop: the addresses of an aggregate have several gateways"
type BGPAdvertisementSpec struct {
	// aggregationLength is the prefix length with which IPv4 addresses are advertised, 1 to 32. An address whose
	// aggregate would extend beyond its pool is advertised with length 32, and that of a Service with
	// externalTrafficPolicy: Local with length 32 as well. Defaults to 32.
	//
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	AggregationLength *int32 `json:"aggregationLength,omitempty"`

	// aggregationLengthV6 is the prefix length with which IPv6 addresses are advertised, 1 to 128. An address whose
	// aggregate would extend beyond its pool is advertised with length 128, and that of a Service with
	// externalTrafficPolicy: Local with length 128 as well. Defaults to 128.
	//
	// +optional
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	AggregationLengthV6 *int32 `json:"aggregationLengthV6,omitempty"`

	// localPref is the LOCAL_PREF attribute (RFC 4271 section 5.1.5), 0 to 4294967295. It is sent to internal peers only.
	// The route with the highest value is preferred. If unset, 100 is sent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	LocalPref *int64 `json:"localPref,omitempty"`

	// med is the MULTI_EXIT_DISC attribute (RFC 4271 section 5.1.4), 0 to 4294967295. The route with the lowest value
	// is preferred. If unset, the attribute is not sent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	MED *int64 `json:"med,omitempty"`

	// asPathPrepend is the number of additional times that the local AS number is prepended to the AS path, 0 to 16. It
	// applies to external peers only. A longer path makes the route less preferred. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	ASPathPrepend int32 `json:"asPathPrepend,omitempty"`

	// nextHop is the next hop of the routes. Node is the address of the node that advertises the route, where
	// OVN-Kubernetes receives the traffic. Gateway is the external address of the gateways of the L2Domain that serves the
	// address: routers on its segment then send the traffic to the gateway that is active. Defaults to Node.
	//
	// +optional
	// +kubebuilder:default=Node
	NextHop NextHop `json:"nextHop,omitempty"`

	// communities are the communities attached to the routes: standard (65000:100, RFC 1997), large (large:65000:1:2, RFC
	// 8092), a well-known name (no-export, no-advertise, no-peer, blackhole, graceful-shutdown), or an alias that a
	// Community defines.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Communities []CommunityRef `json:"communities,omitempty"`

	// ipAddressPools are the names of the pools to advertise. If ipAddressPoolSelectors is also set, a pool matches if
	// either field matches. If neither is set, all pools are advertised.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	IPAddressPools []string `json:"ipAddressPools,omitempty"`

	// ipAddressPoolSelectors select pools by label.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors,omitempty"`

	// nodeSelectors select the nodes that advertise, by label. A node that matches any of them is selected. If unset,
	// all nodes advertise.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`

	// serviceSelectors select the Services to advertise, by label. A Service that matches any of them is selected. If
	// unset, all Services are advertised. This field cannot be combined with aggregates.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`

	// peers are the names of the BGPPeers to advertise to. If unset, the routes are advertised to all peers.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Peers []string `json:"peers,omitempty"`
}

// BGPAdvertisementStatus is the most recently observed status of a BGPAdvertisement.
type BGPAdvertisementStatus struct {
	// ipAddressPools are spec.ipAddressPools as text for kubectl get, which prints lists as JSON: the first ones, and
	// how many follow.
	//
	// +optional
	IPAddressPools string `json:"ipAddressPools,omitempty"`

	// peers are spec.peers as text for kubectl get, in the same form.
	//
	// +optional
	Peers string `json:"peers,omitempty"`

	// conditions represent the current state of the advertisement: Accepted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
