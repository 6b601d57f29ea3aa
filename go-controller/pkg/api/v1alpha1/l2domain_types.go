// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MinGatewaysForFailover is the number of gateways with which a domain always survives the loss of one. With two
// members, the survivor cannot distinguish the failure of the other member from its own isolation (OVN's HA chassis
// groups).
const MinGatewaysForFailover = 3

// L2Domain is one physical network segment. The nodes attached to it answer ARP and neighbor discovery requests for the
// addresses of its pools and fail over to each other.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=l2domains,singular=l2domain,shortName=l2d,categories=slb
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.physicalNetwork`
// +kubebuilder:printcolumn:name="VLAN",type=integer,JSONPath=`.spec.vlan`
// +kubebuilder:printcolumn:name="Subnets",type=string,priority=1,JSONPath=`.status.subnets`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.eligibleNodes`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.activeGatewaySummary`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`
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

// L2DomainList is a list of L2Domains.
//
// +kubebuilder:object:root=true
type L2DomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []L2Domain `json:"items"`
}

// L2DomainSpec defines the segment and the nodes that serve it.
//
// +kubebuilder:validation:XValidation:rule="self.subnets.all(a, self.subnets.all(b, a.cidr == b.cidr || !isCIDR(a.cidr) || !isCIDR(b.cidr) || !cidr(a.cidr).containsCIDR(b.cidr)))",messageExpression="[self.subnets.map(s, s.cidr)].map(cs, cs.filter(b, isCIDR(b) && cs.exists(a, a != b && isCIDR(a) && cidr(a).containsCIDR(b))).join(', ') + ' lies in another of ' + cs.join(', '))[0]",fieldPath=".subnets"
type L2DomainSpec struct {
	// ipAddressPools are the names of the pools to announce on the segment. If ipAddressPoolSelectors is also set, a
	// pool matches if either field matches. If neither is set, all pools are announced.
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

	// nodeSelectors select the nodes that are attached to the segment, by label. A node that matches any of them is
	// selected. If unset, all nodes whose ovn-bridge-mappings contain physicalNetwork are selected.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`

	// serviceSelectors select the Services whose addresses are announced on the segment, by label. A Service that matches
	// any of them is selected. If unset, all Services are. The addresses of the others stay theirs and are announced by
	// BGP alone, if a BGPAdvertisement selects them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`

	// physicalNetwork is the name that the nodes' ovn-bridge-mappings map to the bridge on the segment
	// (ovn-controller(8)).
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",messageExpression="'physicalNetwork: ' + self + ' is no name of ovn-bridge-mappings: letters, digits, dot, dash and underscore'"
	PhysicalNetwork string `json:"physicalNetwork"`

	// vlan is the 802.1Q tag of the segment on that bridge, 1 to 4094. If unset, the segment is untagged.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`

	// subnets are the IP subnets of the segment. An address of a pool is announced on the segment if one of the subnets
	// contains it.
	//
	// +required
	// +listType=map
	// +listMapKey=cidr
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Subnets []Subnet `json:"subnets"`

	// gateways defines how many nodes serve the domain and how its addresses are divided among them.
	//
	// +optional
	// +kubebuilder:default={}
	Gateways GatewaySet `json:"gateways,omitempty"`

	// failover defines how fast the failure of a gateway is detected and what happens after it returns.
	//
	// +optional
	// +kubebuilder:default={}
	Failover Failover `json:"failover,omitempty"`

	// announceInterval is the time after which the active gateway of a shard repeats its gratuitous ARP (RFC 5227) and
	// unsolicited neighbor advertisement (RFC 4861 section 7.2.6), for switches that forget the MAC address of the shard
	// while no client sends: a duration, 10s to 1h. Where a subnet has a gateway, BFD packets to it already keep switches
	// on the way there up to date. If unset, a shard is announced only when a gateway claims it.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(\\\\.[0-9]{1,9})?(ms|s|m|h))+$') && (duration(self) >= duration('10s') && duration(self) <= duration('1h'))",messageExpression="'announceInterval: ' + self + ' is no duration between 10s and 1h'"
	AnnounceInterval *metav1.Duration `json:"announceInterval,omitempty"`
}

// Subnet is one IP subnet of a segment and the router on it.
//
// +kubebuilder:validation:XValidation:rule="isCIDR(self.cidr)",messageExpression="'cidr: ' + self.cidr + ' is no CIDR'",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || cidr(self.cidr) == cidr(self.cidr).masked()",messageExpression="'cidr: ' + self.cidr + ' has host bits set'",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || cidr(self.cidr).masked().ip().isGlobalUnicast()",messageExpression="'cidr: ' + self.cidr + ' is no subnet of hosts: loopback, link-local, multicast or unspecified'",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway) || (cidr(self.cidr).ip().family() == 6 && ip(self.gateway).family() == 6 && ip(self.gateway).isLinkLocalUnicast())",messageExpression="'gateway: ' + self.gateway + ' is not in ' + self.cidr",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).prefixLength() >= (self.cidr.contains(':') ? 127 : 31) || !cidr(self.cidr.split('/', 2)[0] + (self.cidr.contains(':') ? '/128' : '/32')).containsIP(self.gateway)",messageExpression="'gateway: ' + self.gateway + ' is the network address of ' + self.cidr",fieldPath=".gateway"
type Subnet struct {
	// cidr of the subnet, without host bits, for example 10.50.0.0/24.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=43
	CIDR string `json:"cidr"`

	// gateway is the router to which packets to clients outside the segment are sent: an address of the subnet, or a
	// link-local IPv6 address. If unset, only clients on the segment are reachable.
	//
	// +optional
	Gateway IPAddress `json:"gateway,omitempty"`
}

// GatewaySet defines the size of the set of gateways of a domain.
type GatewaySet struct {
	// max is the maximum number of gateways per shard (members of its HA chassis group), 1 to 64. With fewer than 3,
	// the domain may not survive the loss of a gateway. Defaults to 5.
	//
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Max int32 `json:"max,omitempty"`

	// shards is the number of units of failover, 1 to 64. Each shard is active on one gateway, so this is also the
	// maximum number of gateways that carry traffic at the same time. A change moves some addresses between gateways,
	// so the default is a constant and does not depend on the number of nodes. Defaults to 8.
	//
	// +optional
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Shards int32 `json:"shards,omitempty"`

	// preferred are preferences among the nodes that can be gateways: of those that are fit, the nodes with the highest
	// sum of the weights of matching preferences come first in each shard, and share the shards evenly. Nodes that no
	// preference matches remain gateways, after the others. A shard whose gateway is fit moves to a more preferred one
	// only with failover.preempt, or on request.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Preferred []PreferredGateways `json:"preferred,omitempty"`
}

// PreferredGateways is a preference for the nodes that a selector matches.
type PreferredGateways struct {
	// weight is added to the sum of each node that preference matches, 1 to 100.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// preference selects nodes by label.
	//
	// +required
	Preference metav1.LabelSelector `json:"preference"`
}

// Failover configures failure detection between gateways. OVN has one setting per cluster: the fastest domain
// determines it for all.
type Failover struct {
	// detectInterval is the time between two BFD packets of a gateway: a duration, 50ms to 10s. In clusters with so many
	// nodes that a gateway would exchange more than 10,000 packets per second, a longer interval is used, which the
	// condition Ready reports (more than 1,000 nodes with the default). Defaults to 200ms.
	//
	// +optional
	// +kubebuilder:default="200ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(\\\\.[0-9]{1,9})?(ms|s|m|h))+$') && (duration(self) >= duration('50ms') && duration(self) <= duration('10s'))",messageExpression="'detectInterval: ' + self + ' is no duration between 50ms and 10s'"
	DetectInterval *metav1.Duration `json:"detectInterval,omitempty"`

	// multiplier is the number of consecutive packets that must be missing before a gateway is considered failed, 2 to
	// 20. Defaults to 3: with the default detectInterval, a failed gateway is detected within 600 ms.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=20
	Multiplier int32 `json:"multiplier,omitempty"`

	// preempt moves a shard back to its preferred gateway as soon as that gateway returns, at the cost of a second
	// interruption, and to a gateway that gateways.preferred ranks higher. A gateway that had a fault or was excluded has
	// returned once neither has been the case for 30 seconds, or longer, up to 8 minutes, if that is repeated. If false,
	// the shard stays on the gateway that has it. Defaults to false.
	//
	// +optional
	Preempt bool `json:"preempt,omitempty"`
}

// L2DomainStatus is the most recently observed status of an L2Domain.
type L2DomainStatus struct {
	// subnets are the CIDRs of spec.subnets as text for kubectl get, which prints lists as JSON: the first ones, and how
	// many follow.
	//
	// +optional
	Subnets string `json:"subnets,omitempty"`

	// mode is how the domain is served: Central (the controller programs the northbound database of the cluster),
	// Interconnect (agents program the databases of their nodes) or OpenShiftSDN (the kernels of the nodes hold the
	// addresses). It is absent if the domain is not served and nothing of an earlier mode may be left. A domain is not
	// served in one mode while gateways of the other may still answer for its addresses.
	//
	// +optional
	Mode string `json:"mode,omitempty"`

	// modeMessage describes what the mode follows from, for example "all 3 nodes are in zone global of OVN-Kubernetes".
	//
	// +optional
	ModeMessage string `json:"modeMessage,omitempty"`

	// shards are the shards in use, by index.
	//
	// +optional
	// +listType=map
	// +listMapKey=index
	Shards []ShardStatus `json:"shards,omitempty"`

	// eligibleNodes is the number of nodes that can be gateways of the domain now: neither excluded, nor faulty, draining
	// or unreachable for Kubernetes. If all gateways drain, those that stay because there are no others count.
	//
	// +optional
	EligibleNodes int32 `json:"eligibleNodes"`

	// activeGatewaySummary names the nodes that are currently active for shards, for example "n1, n3"; shards has the node
	// of each.
	//
	// +optional
	ActiveGatewaySummary string `json:"activeGatewaySummary,omitempty"`

	// excludedNodes are the nodes that are not gateways, with the reason for each: the first 64 by name, without the
	// nodes that nodeSelectors do not match.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ExcludedNodes []ExcludedNode `json:"excludedNodes,omitempty"`

	// move is the progress of the request in the annotation slb.k8s.ovn.org/move. It is absent if there is none.
	//
	// +optional
	Move *MoveStatus `json:"move,omitempty"`

	// conditions represent the current state of the domain: Accepted and Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// States of a request to move shards.
const (
	// MoveInProgress means that the node is not active for all shards of the request yet.
	MoveInProgress = "InProgress"
	// MoveCompleted means that the node has become active for all shards of the request.
	MoveCompleted = "Completed"
	// MoveFailed means that the shards can't be moved, or that they were not within 30 seconds.
	MoveFailed = "Failed"
)

// MoveStatus is the progress of a request to move shards to another gateway.
type MoveStatus struct {
	// request is the value of the annotation: a request that is completed or failed has no effect any more.
	//
	// +required
	Request string `json:"request"`

	// state is one of InProgress, Completed and Failed.
	//
	// +required
	State string `json:"state"`

	// message describes what was observed.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ShardStatus is one unit of failover.
type ShardStatus struct {
	// index is the index of the shard, starting with 0.
	//
	// +required
	Index int32 `json:"index"`

	// gateways are the names of the nodes of the shard, in order of preference.
	//
	// +optional
	// +listType=atomic
	Gateways []string `json:"gateways,omitempty"`

	// active is the name of the active gateway of the shard. It is absent if there is none.
	//
	// +optional
	Active string `json:"active,omitempty"`

	// ordinal is the number from which all zones derive the addresses and tunnel keys of the shard's routers, 0 to 255,
	// in a cluster with interconnect. No two shards of the cluster have the same.
	//
	// +optional
	Ordinal *int32 `json:"ordinal,omitempty"`

	// addresses is the number of addresses of the shard.
	//
	// +optional
	Addresses int32 `json:"addresses"`

	// anchors are the external addresses of the shard itself, at most one per family. They are the next hops of
	// BGPAdvertisements with nextHop Gateway.
	//
	// +optional
	// +listType=atomic
	Anchors []string `json:"anchors,omitempty"`
}

// MaxExcludedNodes is the maximum number of nodes that a status lists as excluded.
const MaxExcludedNodes = 64

// ExcludedNode is a node that is not a gateway.
type ExcludedNode struct {
	// name is the name of the node.
	//
	// +required
	Name string `json:"name"`

	// reason is one of NoChassis, OtherZone, NoAgent, NoOverlay, NotAttached, SharedGateway, NoGuard, PortMissing,
	// Draining, Faulty and EnoughGateways.
	//
	// +required
	Reason string `json:"reason"`

	// message describes what was observed.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
