// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPPeer is a router with which nodes keep a BGP session (RFC 4271). The nodes open the connection. Routes that the
// peer advertises are ignored.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=bgppeers,singular=bgppeer,shortName=bgpp,categories=slb
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.peerAddress`
// +kubebuilder:printcolumn:name="Interface",type=string,JSONPath=`.spec.interface`
// +kubebuilder:printcolumn:name="ASN",type=integer,JSONPath=`.spec.peerASN`
// +kubebuilder:printcolumn:name="BFD",type=string,JSONPath=`.spec.bfdProfile`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BGPPeer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec BGPPeerSpec `json:"spec"`
	// +optional
	Status BGPPeerStatus `json:"status,omitempty"`
}

// BGPPeerList is a list of BGPPeers.
//
// +kubebuilder:object:root=true
type BGPPeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPPeer `json:"items"`
}

// DynamicASN defines which AS numbers of a peer are accepted.
//
// +kubebuilder:validation:Enum=internal;external
type DynamicASN string

const (
	// DynamicASNInternal accepts a peer of the same AS, myASN.
	DynamicASNInternal DynamicASN = "internal"
	// DynamicASNExternal accepts a peer of any other AS.
	DynamicASNExternal DynamicASN = "external"
)

// Backend is what has the sessions of a peer.
//
// +kubebuilder:validation:Enum=GoBGP;FRRK8s
type Backend string

const (
	// BackendGoBGP has sessions of the daemon of this project on each node.
	BackendGoBGP Backend = "GoBGP"
	// BackendFRRK8s has sessions of FRR, by FRRConfigurations of frr-k8s that the controller writes.
	BackendFRRK8s Backend = "FRRK8s"
)

// BGPPeerSpec describes the session.
//
// +kubebuilder:validation:XValidation:rule="has(self.peerASN) != has(self.dynamicASN)",message="peerASN: exactly one of peerASN and dynamicASN is required"
// +kubebuilder:validation:XValidation:rule="has(self.peerAddress) != has(self.interface)",messageExpression="has(self.peerAddress) ? 'peerAddress: ' + self.peerAddress + ' and interface: ' + self.interface + ' exclude each other' : 'peerAddress: one of peerAddress and interface is required'"
// +kubebuilder:validation:XValidation:rule="!has(self.password) || !has(self.passwordSecret)",message="password: password and passwordSecret exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecurityHops) || !(has(self.multihopTTL) || (has(self.ebgpMultiHop) && self.ebgpMultiHop))",message="ttlSecurityHops: ttlSecurityHops excludes ebgpMultiHop and multihopTTL"
// +kubebuilder:validation:XValidation:rule="!has(self.sourceAddress) || !has(self.peerAddress) || !isIP(self.sourceAddress) || !isIP(self.peerAddress) || ip(self.sourceAddress).family() == ip(self.peerAddress).family()",messageExpression="'sourceAddress: ' + self.sourceAddress + ' and peerAddress: ' + self.peerAddress + ' are of different families'"
// +kubebuilder:validation:XValidation:rule="!has(self.holdTime) || !has(self.keepaliveTime) || ![self.holdTime, self.keepaliveTime].all(d, d.matches('^([0-9]{1,6}(s|m|h))+$')) || duration(self.holdTime) == duration('0s') || duration(self.keepaliveTime) + duration(self.keepaliveTime) + duration(self.keepaliveTime) <= duration(self.holdTime)",messageExpression="'holdTime: ' + self.holdTime + ' is less than three times keepaliveTime: ' + self.keepaliveTime"
// +kubebuilder:validation:XValidation:rule="has(self.holdTime) || !has(self.keepaliveTime) || !self.keepaliveTime.matches('^([0-9]{1,6}(s|m|h))+$') || duration(self.keepaliveTime) <= duration('30s')",messageExpression="'keepaliveTime: ' + self.keepaliveTime + ' is more than a third of the default holdTime, 90s'"
// +kubebuilder:validation:XValidation:rule="!has(self.vrf) || size(self.vrf) == 0",messageExpression="'vrf: ' + self.vrf + ' is not supported: sessions are in the default VRF of the node, where OVN-Kubernetes takes the traffic of Services'"
// +kubebuilder:validation:XValidation:rule="!(has(self.disableMP) && self.disableMP && has(self.dualStackAddressFamily) && self.dualStackAddressFamily)",message="disableMP: true excludes dualStackAddressFamily: true"
// +kubebuilder:validation:XValidation:rule="!has(self.localASN) || !has(self.peerASN) || self.localASN != self.peerASN",message="localASN: localASN and peerASN are the same"
// +kubebuilder:validation:XValidation:rule="!has(self.localASN) || !((has(self.peerASN) && self.peerASN == self.myASN) || (has(self.dynamicASN) && self.dynamicASN == 'internal'))",message="localASN: localASN is for external peers only"
// +kubebuilder:validation:XValidation:rule="!(has(self.multihopTTL) || (has(self.ebgpMultiHop) && self.ebgpMultiHop) || has(self.ttlSecurityHops)) || !((has(self.peerASN) && self.peerASN == self.myASN) || (has(self.dynamicASN) && self.dynamicASN == 'internal'))",message="ebgpMultiHop: ebgpMultiHop, multihopTTL and ttlSecurityHops are for external peers only"
// +kubebuilder:validation:XValidation:rule="!has(self.interface) || !(has(self.multihopTTL) || (has(self.ebgpMultiHop) && self.ebgpMultiHop) || has(self.sourceAddress) || has(self.password) || has(self.passwordSecret))",messageExpression="'interface: ' + self.interface + ' excludes ebgpMultiHop, multihopTTL, sourceAddress, password and passwordSecret: the peer is on the link, at an address that nobody wrote down'"
// +kubebuilder:validation:XValidation:rule="!has(self.peerAddress) || !isIP(self.peerAddress) || ip(self.peerAddress).isGlobalUnicast() || ip(self.peerAddress).isLoopback() || ip(self.peerAddress).isLinkLocalUnicast()",messageExpression="'peerAddress: ' + self.peerAddress + ' is no unicast address'"
// +kubebuilder:validation:XValidation:rule="!has(self.peerAddress) || !isIP(self.peerAddress) || ip(self.peerAddress).family() == 4 || !ip(self.peerAddress).isLinkLocalUnicast()",messageExpression="'peerAddress: ' + self.peerAddress + ' is on any link: name the interface instead'"
// +kubebuilder:validation:XValidation:rule="!has(self.backend) || self.backend != 'FRRK8s' || !(has(self.ttlSecurityHops) || (has(self.multihopTTL) && self.multihopTTL != 255))",message="backend: FRRK8s excludes ttlSecurityHops, and multihopTTL other than 255: frr-k8s has no field for them"
// +kubebuilder:validation:XValidation:rule="!has(self.backend) || self.backend != 'FRRK8s' || !has(self.peerPort) || self.peerPort <= 16384",message="backend: FRRK8s excludes peerPort above 16384: frr-k8s has no others"
// +kubebuilder:validation:XValidation:rule="!has(self.backend) || self.backend != 'FRRK8s' || ![has(self.holdTime) ? self.holdTime : '90s', has(self.keepaliveTime) ? self.keepaliveTime : '1s'].all(d, d.matches('^([0-9]{1,6}(s|m|h))+$')) || !has(self.keepaliveTime) || (duration(has(self.holdTime) ? self.holdTime : '90s') == duration('180s')) == (duration(self.keepaliveTime) == duration('60s'))",message="backend: FRRK8s excludes keepaliveTime: 60s unless holdTime is 180s, and the reverse: frr-k8s would use neither"
// +kubebuilder:validation:XValidation:rule="!has(self.backend) || self.backend != 'FRRK8s' || !has(self.password) || self.password.matches('^[!-~]+$')",message="backend: FRRK8s excludes passwords with blanks and other characters than ASCII: they would be text of FRR's configuration"
// +kubebuilder:validation:XValidation:rule="!has(self.backend) || self.backend != 'FRRK8s' || !has(self.interface) || self.interface.matches('^[A-Za-z0-9_.-]+$')",message="backend: FRRK8s excludes interfaces with other characters than letters, digits, dots, dashes and underscores"
type BGPPeerSpec struct {
	// backend is what has the sessions. GoBGP is the BGP daemon of this project on each node. FRRK8s is FRR, as frr-k8s
	// runs it: the controller writes FRRConfigurations, and needs --frr-k8s-namespace. Fields that FRRConfigurations do
	// not have are refused. If another FRRConfiguration defines the same neighbor on a node, its session is used as it is
	// defined there. Defaults to GoBGP.
	//
	// +optional
	Backend Backend `json:"backend,omitempty"`

	// myASN is the AS number of the nodes, 1 to 4294967295.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	MyASN int64 `json:"myASN"`

	// peerASN is the AS number of the peer, 1 to 4294967295.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	PeerASN int64 `json:"peerASN,omitempty"`

	// dynamicASN replaces peerASN: internal accepts a peer of myASN, external accepts a peer of any other AS.
	//
	// +optional
	DynamicASN DynamicASN `json:"dynamicASN,omitempty"`

	// localASN is sent to this peer instead of myASN, 1 to 4294967295 (local-as).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	LocalASN int64 `json:"localASN,omitempty"`

	// peerAddress is the unicast address of the peer, IPv4 or IPv6. An IPv4 address may be link-local (169.254.0.0/16).
	// For a link-local IPv6 address, set interface instead.
	//
	// +optional
	PeerAddress IPAddress `json:"peerAddress,omitempty"`

	// interface is the name of the node's interface to the peer and replaces peerAddress: the peer is found by its
	// link-local address (unnumbered, RFC 8950).
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`

	// sourceAddress is the local address of the session. Defaults to the address that the routing table selects.
	//
	// +optional
	SourceAddress IPAddress `json:"sourceAddress,omitempty"`

	// peerPort is the TCP port of the peer, 1 to 65535. Defaults to 179.
	//
	// +optional
	// +kubebuilder:default=179
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	PeerPort int32 `json:"peerPort,omitempty"`

	// holdTime is the time without a message from the peer after which the session is closed (RFC 4271 section 4.2): a
	// duration of whole seconds, 0s (never) or 3s to 65535s. Defaults to 90s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h))+$') && (duration(self) == duration('0s') || (duration(self) >= duration('3s') && duration(self) <= duration('65535s')))",messageExpression="'holdTime: ' + self + ' is no duration of whole seconds, 0s or 3s to 65535s'"
	HoldTime *metav1.Duration `json:"holdTime,omitempty"`

	// keepaliveTime is the time between two keepalive messages, in whole seconds, 1s to 21845s. Defaults to a third of
	// holdTime.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h))+$') && (duration(self) >= duration('1s') && duration(self) <= duration('21845s'))",messageExpression="'keepaliveTime: ' + self + ' is no duration of whole seconds between 1s and 21845s'"
	KeepaliveTime *metav1.Duration `json:"keepaliveTime,omitempty"`

	// connectTime is the time between two attempts to connect, in whole seconds, 1s to 65535s. Defaults to 5s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h))+$') && (duration(self) >= duration('1s') && duration(self) <= duration('65535s'))",messageExpression="'connectTime: ' + self + ' is no duration of whole seconds between 1s and 65535s'"
	ConnectTime *metav1.Duration `json:"connectTime,omitempty"`

	// routerID is the BGP identifier of the nodes, in the form of an IPv4 address. It should not be set if several nodes
	// have the session. Defaults to the node's own IPv4 address or, without one, a value derived from the node's name.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 4",messageExpression="'routerID: ' + self + ' is no IPv4 address'"
	RouterID IPAddress `json:"routerID,omitempty"`

	// nodeSelectors select the nodes that have the session, by label. A node that matches any of them is selected. If
	// unset, all nodes are selected.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`

	// password is the password of the session (TCP MD5, RFC 2385). Anyone who can read this object can read it; use
	// passwordSecret instead if possible.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Password string `json:"password,omitempty"`

	// passwordSecret refers to a Secret of type kubernetes.io/basic-auth whose key password contains the password of
	// the session. The Secret must be in namespace ovnkube-slb-bgp, the only namespace whose Secrets are read. With
	// backend FRRK8s it must be in the namespace of frr-k8s instead, the only one whose Secrets frr-k8s reads.
	//
	// +optional
	PasswordSecret *PasswordReference `json:"passwordSecret,omitempty"`

	// bfdProfile is the name of the BFDProfile for the BFD session with the peer. If unset, BFD is not used.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BFDProfile string `json:"bfdProfile,omitempty"`

	// enableGracefulRestart makes the peer keep the routes while the speaker restarts (RFC 4724). Defaults to false.
	//
	// +optional
	EnableGracefulRestart bool `json:"enableGracefulRestart,omitempty"`

	// ebgpMultiHop allows an external peer that is not on the node's link, up to multihopTTL hops away. Defaults to
	// false.
	//
	// +optional
	EBGPMultiHop bool `json:"ebgpMultiHop,omitempty"`

	// multihopTTL is the TTL or hop limit of packets to an external peer, 2 to 255. Setting it implies ebgpMultiHop.
	// Defaults to 255 with ebgpMultiHop, otherwise to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=255
	MultihopTTL int32 `json:"multihopTTL,omitempty"`

	// ttlSecurityHops is the maximum number of hops from which packets of an external peer are accepted, 1 to 254
	// (Generalized TTL Security Mechanism, RFC 5082). If unset, the number of hops is not checked.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	TTLSecurityHops int32 `json:"ttlSecurityHops,omitempty"`

	// dualStackAddressFamily advertises both IPv4 and IPv6 prefixes in this session, instead of only those of the
	// session's own family. Defaults to false.
	//
	// +optional
	DualStackAddressFamily bool `json:"dualStackAddressFamily,omitempty"`

	// disableMP is MetalLB's older field for the behavior without dualStackAddressFamily: a session advertises only
	// prefixes of its own family. It is mutually exclusive with dualStackAddressFamily: true. Defaults to false.
	//
	// +optional
	DisableMP bool `json:"disableMP,omitempty"`

	// vrf is MetalLB's field for a session in a VRF of the node. It is not supported: any value is rejected, so that it is
	// not silently ignored.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=15
	VRF string `json:"vrf,omitempty"`
}

// PasswordReference refers to a Secret.
type PasswordReference struct {
	// name is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace is the namespace of the Secret. It must be ovnkube-slb-bgp, and has no effect with backend FRRK8s.
	// Defaults to ovnkube-slb-bgp.
	//
	// +optional
	// +kubebuilder:default=ovnkube-slb-bgp
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == 'ovnkube-slb-bgp'",messageExpression="'namespace: ' + self + ': only Secrets of namespace ovnkube-slb-bgp are read'"
	Namespace string `json:"namespace,omitempty"`
}

// BGPPeerStatus is the most recently observed status of a BGPPeer. The sessions are in the BGPNodeStatus of each node.
type BGPPeerStatus struct {
	// conditions represent the current state of the peer: Accepted, and Ready, which is True if the session is established
	// on every selected node.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
