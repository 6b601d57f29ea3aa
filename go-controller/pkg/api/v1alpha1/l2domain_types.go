// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MinGatewaysForFailover is how many gateways a domain needs so that the loss of
// one is always survived: with two members a sole survivor cannot tell the
// other's death from its own isolation (OVN's HA chassis groups).
const MinGatewaysForFailover = 3

// L2Domain is one physical segment: the nodes attached to it answer ARP and
// neighbour discovery for the addresses of its pools and fail over to each other.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=l2domains,singular=l2domain,shortName=l2d,categories=slb
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.physicalNetwork`
// +kubebuilder:printcolumn:name="VLAN",type=integer,JSONPath=`.spec.vlan`
// +kubebuilder:printcolumn:name="Subnets",type=string,priority=1,JSONPath=`.spec.subnets`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.eligibleNodes`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.activeGateways`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type L2Domain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec L2DomainSpec `json:"spec"`
	// +optional
	Status L2DomainStatus `json:"status,omitempty"`
}

// L2DomainList is a list of domains.
//
// +kubebuilder:object:root=true
type L2DomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []L2Domain `json:"items"`
}

// L2DomainSpec says where the segment is and who serves on it.
//
// +kubebuilder:validation:XValidation:rule="self.subnets.all(a, self.subnets.all(b, a.cidr == b.cidr || !isCIDR(a.cidr) || !isCIDR(b.cidr) || !cidr(a.cidr).containsCIDR(b.cidr)))",messageExpression="[self.subnets.map(s, s.cidr)].map(cs, cs.filter(b, isCIDR(b) && cs.exists(a, a != b && isCIDR(a) && cidr(a).containsCIDR(b))).join(', ') + ' lies in another of ' + cs.join(', '))[0]",fieldPath=".subnets"
type L2DomainSpec struct {
	// IPAddressPools are names of the pools announced here. With
	// ipAddressPoolSelectors, either match is enough; with neither, all pools
	// are announced here.
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

	// NodeSelectors match labels of the nodes that are attached to the segment; one
	// match is enough. Absent: every node whose ovn-bridge-mappings have
	// physicalNetwork.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`

	// PhysicalNetwork is the name that the nodes' ovn-bridge-mappings give to the bridge on the segment
	// (ovn-controller(8)).
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",messageExpression="'physicalNetwork: ' + self + ' is no name of ovn-bridge-mappings: letters, digits, dot, dash and underscore'"
	PhysicalNetwork string `json:"physicalNetwork"`

	// VLAN is the 802.1Q tag of the segment on that bridge, 1 to 4094. Absent: untagged.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`

	// Subnets of the segment. An address of a pool is announced here if one of
	// them has it.
	//
	// +required
	// +listType=map
	// +listMapKey=cidr
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Subnets []Subnet `json:"subnets"`

	// Gateways says how many nodes serve.
	//
	// +optional
	// +kubebuilder:default={}
	Gateways GatewaySet `json:"gateways,omitempty"`

	// Failover says how soon a gateway's death is noticed and what follows.
	//
	// +optional
	// +kubebuilder:default={}
	Failover Failover `json:"failover,omitempty"`
}

// Subnet is one IP subnet of a segment and the router on it.
//
// +kubebuilder:validation:XValidation:rule="isCIDR(self.cidr)",messageExpression="'cidr: ' + self.cidr + ' is no CIDR'",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || cidr(self.cidr) == cidr(self.cidr).masked()",messageExpression="'cidr: ' + self.cidr + ' has host bits set'",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || cidr(self.cidr).masked().ip().isGlobalUnicast()",messageExpression="'cidr: ' + self.cidr + ' is no subnet of hosts: loopback, link-local, multicast or unspecified'",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway) || (cidr(self.cidr).ip().family() == 6 && ip(self.gateway).isLinkLocalUnicast())",messageExpression="'gateway: ' + self.gateway + ' is not in ' + self.cidr",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).prefixLength() >= (self.cidr.contains(':') ? 127 : 31) || !cidr(self.cidr.split('/', 2)[0] + (self.cidr.contains(':') ? '/128' : '/32')).containsIP(self.gateway)",messageExpression="'gateway: ' + self.gateway + ' is the network address of ' + self.cidr",fieldPath=".gateway"
type Subnet struct {
	// CIDR of the subnet, without host bits: 10.50.0.0/24.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=43
	CIDR string `json:"cidr"`

	// Gateway is the router that packets to clients beyond the segment are sent to:
	// an address of the subnet, or a link-local IPv6 address. Absent: only clients on
	// the segment are reached.
	//
	// +optional
	Gateway IPAddress `json:"gateway,omitempty"`
}

// GatewaySet sizes the set of gateways of a domain.
type GatewaySet struct {
	// Max is how many nodes stand by for each shard (members of its HA chassis
	// group), 1 to 64. With fewer than 3 the loss of one may not be survived. Default 5.
	//
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Max int32 `json:"max,omitempty"`

	// Shards is the number of units of failover, 1 to 64: each is active on one gateway, so that up to so many gateways
	// carry traffic at a time. A change moves some addresses between gateways, so the default is a constant and does not
	// follow the number of nodes. Default 8.
	//
	// +optional
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Shards int32 `json:"shards,omitempty"`
}

// Failover tunes failure detection between gateways. OVN has one setting a
// cluster: the fastest domain decides for all.
type Failover struct {
	// DetectInterval is the time between two BFD packets of a gateway: a duration, 50ms to 10s. Default 200ms.
	//
	// +optional
	// +kubebuilder:default="200ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(\\\\.[0-9]{1,9})?(ms|s|m|h))+$') && (duration(self) >= duration('50ms') && duration(self) <= duration('10s'))",messageExpression="'detectInterval: ' + self + ' is no duration between 50ms and 10s'"
	DetectInterval *metav1.Duration `json:"detectInterval,omitempty"`

	// Multiplier is how many packets in a row must be missing, 2 to 20. Default 3:
	// with the default interval a dead gateway is noticed in 600 ms.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=20
	Multiplier int32 `json:"multiplier,omitempty"`

	// Preempt gives a shard back to its first gateway as soon as that returns, at the
	// price of a second interruption. Default false: it stays where it is.
	//
	// +optional
	Preempt bool `json:"preempt,omitempty"`
}

// L2DomainStatus is what the controller decided and saw last.
type L2DomainStatus struct {
	// Shards in use, by index.
	//
	// +optional
	// +listType=map
	// +listMapKey=index
	Shards []ShardStatus `json:"shards,omitempty"`

	// EligibleNodes is how many nodes could be gateways of the domain.
	//
	// +optional
	EligibleNodes int32 `json:"eligibleNodes"`

	// ActiveGateways are the nodes that carry shards now, by name, as "n1, n3".
	//
	// +optional
	ActiveGateways string `json:"activeGateways,omitempty"`

	// LeftOutNodes are nodes that are not gateways, and why: the first 64 by name,
	// without those that nodeSelectors do not take.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	LeftOutNodes []LeftOutNode `json:"leftOutNodes,omitempty"`

	// Conditions of the domain: Accepted and Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ShardStatus is one unit of failover.
type ShardStatus struct {
	// Index of the shard, from 0.
	//
	// +required
	Index int32 `json:"index"`

	// Gateways are the names of the nodes of the shard, first choice first.
	//
	// +optional
	// +listType=atomic
	Gateways []string `json:"gateways,omitempty"`

	// Active is the name of the node that answers now; absent if none does.
	//
	// +optional
	Active string `json:"active,omitempty"`

	// Addresses is how many addresses the shard answers for.
	//
	// +optional
	Addresses int32 `json:"addresses"`

	// Anchors are the shard's own external addresses, at most one a family: the next
	// hops of BGPAdvertisements with nextHop Gateway.
	//
	// +optional
	// +listType=atomic
	Anchors []string `json:"anchors,omitempty"`
}

// LeftOutNode is a node that is not a gateway.
type LeftOutNode struct {
	// Name of the node.
	//
	// +required
	Name string `json:"name"`

	// Reason in one word: NoChassis, OtherZone, NoAgent, NotAttached, SharedGateway, NoGuard,
	// PortMissing, Draining, Faulty, EnoughGateways.
	//
	// +required
	Reason string `json:"reason"`

	// Message says what was seen.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
