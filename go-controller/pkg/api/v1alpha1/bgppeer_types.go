// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPPeer is a router that nodes keep a BGP session with (RFC 4271). They dial; nothing
// that the peer tells is taken.
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

// BGPPeerList is a list of peers.
//
// +kubebuilder:object:root=true
type BGPPeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPPeer `json:"items"`
}

// DynamicASN says which AS numbers of a peer are accepted.
//
// +kubebuilder:validation:Enum=internal;external
type DynamicASN string

const (
	// DynamicASNInternal accepts a peer of our own AS.
	DynamicASNInternal DynamicASN = "internal"
	// DynamicASNExternal accepts a peer of any other AS.
	DynamicASNExternal DynamicASN = "external"
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
// +kubebuilder:validation:XValidation:rule="!has(self.peerAddress) || !isIP(self.peerAddress) || !(ip(self.peerAddress).isLinkLocalUnicast() || ip(self.peerAddress).isLinkLocalMulticast() || ip(self.peerAddress).isUnspecified())",messageExpression="'peerAddress: ' + self.peerAddress + ' is no address to dial: for a link-local peer name the interface instead'"
type BGPPeerSpec struct {
	// MyASN is the AS number of the nodes, 1 to 4294967295.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	MyASN int64 `json:"myASN"`

	// PeerASN is the AS number of the peer, 1 to 4294967295.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	PeerASN int64 `json:"peerASN,omitempty"`

	// DynamicASN instead of peerASN: internal accepts a peer of myASN, external
	// one of any other AS.
	//
	// +optional
	DynamicASN DynamicASN `json:"dynamicASN,omitempty"`

	// LocalASN is shown to this peer instead of myASN, 1 to 4294967295 (local-as).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	LocalASN int64 `json:"localASN,omitempty"`

	// PeerAddress to dial, IPv4 or IPv6.
	//
	// +optional
	PeerAddress IPAddress `json:"peerAddress,omitempty"`

	// Interface of the node instead of peerAddress: the peer is found by its
	// link-local address (unnumbered, RFC 8950).
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`

	// SourceAddress to dial from. Default: what the routing table gives.
	//
	// +optional
	SourceAddress IPAddress `json:"sourceAddress,omitempty"`

	// PeerPort to dial, 1 to 65535. Default 179.
	//
	// +optional
	// +kubebuilder:default=179
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	PeerPort int32 `json:"peerPort,omitempty"`

	// HoldTime after which a silent session is dropped (RFC 4271 section 4.2): a duration of whole seconds, 0s (never) or
	// 3s to 65535s. Default 90s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h))+$') && (duration(self) == duration('0s') || (duration(self) >= duration('3s') && duration(self) <= duration('65535s')))",messageExpression="'holdTime: ' + self + ' is no duration of whole seconds, 0s or 3s to 65535s'"
	HoldTime *metav1.Duration `json:"holdTime,omitempty"`

	// KeepaliveTime between two messages, whole seconds, 1s to 21845s. Default: a third of the hold time.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h))+$') && (duration(self) >= duration('1s') && duration(self) <= duration('21845s'))",messageExpression="'keepaliveTime: ' + self + ' is no duration of whole seconds between 1s and 21845s'"
	KeepaliveTime *metav1.Duration `json:"keepaliveTime,omitempty"`

	// ConnectTime between two attempts to connect, whole seconds, 1s to 65535s. Default 5s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h))+$') && (duration(self) >= duration('1s') && duration(self) <= duration('65535s'))",messageExpression="'connectTime: ' + self + ' is no duration of whole seconds between 1s and 65535s'"
	ConnectTime *metav1.Duration `json:"connectTime,omitempty"`

	// RouterID of the nodes, written as an IPv4 address. With several nodes it is best left out. Default: the node's own
	// IPv4 address, or one made of its name.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 4",messageExpression="'routerID: ' + self + ' is no IPv4 address'"
	RouterID IPAddress `json:"routerID,omitempty"`

	// NodeSelectors match labels of the nodes that keep the session; one match is
	// enough. Absent: every node.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`

	// Password of the session (TCP MD5, RFC 2385), readable by everybody who
	// may read this object; prefer passwordSecret.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Password string `json:"password,omitempty"`

	// PasswordSecret names a Secret of type kubernetes.io/basic-auth whose key
	// password is the password of the session. It is in namespace ovnkube-slb-bgp,
	// the only one whose Secrets are read.
	//
	// +optional
	PasswordSecret *PasswordReference `json:"passwordSecret,omitempty"`

	// BFDProfile is the name of the BFDProfile that watches the peer. Absent: no BFD.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BFDProfile string `json:"bfdProfile,omitempty"`

	// EnableGracefulRestart keeps our routes in the peer while the speaker restarts
	// (RFC 4724). Default false.
	//
	// +optional
	EnableGracefulRestart bool `json:"enableGracefulRestart,omitempty"`

	// EBGPMultiHop allows an external peer that is not on the node's link, up to
	// multihopTTL hops away. Default false.
	//
	// +optional
	EBGPMultiHop bool `json:"ebgpMultiHop,omitempty"`

	// MultihopTTL is the TTL or hop limit of packets to the peer, 2 to 255; setting
	// it implies ebgpMultiHop. Default 255 with ebgpMultiHop, else 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=255
	MultihopTTL int32 `json:"multihopTTL,omitempty"`

	// TTLSecurityHops accepts packets of the peer only from at most so many hops
	// away, 1 to 254 (generalized TTL security, RFC 5082). Absent: off.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	TTLSecurityHops int32 `json:"ttlSecurityHops,omitempty"`

	// DualStackAddressFamily carries IPv4 and IPv6 prefixes in this one session
	// instead of only those of its own family. Default false.
	//
	// +optional
	DualStackAddressFamily bool `json:"dualStackAddressFamily,omitempty"`

	// DisableMP is MetalLB's older word for what counts anyway without dualStackAddressFamily: a session carries
	// prefixes of its own family only. It excludes dualStackAddressFamily: true. Default false.
	//
	// +optional
	DisableMP bool `json:"disableMP,omitempty"`

	// VRF is MetalLB's field for a session in a VRF of the node. It is not supported: any value is refused, so that none
	// is ignored.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=15
	VRF string `json:"vrf,omitempty"`
}

// PasswordReference names a Secret.
type PasswordReference struct {
	// Name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Secret: ovnkube-slb-bgp, which is also the default.
	//
	// +optional
	// +kubebuilder:default=ovnkube-slb-bgp
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == 'ovnkube-slb-bgp'",messageExpression="'namespace: ' + self + ': only Secrets of namespace ovnkube-slb-bgp are read'"
	Namespace string `json:"namespace,omitempty"`
}

// BGPPeerStatus is what the controller saw last. Sessions are in the
// BGPNodeStatus of each node.
type BGPPeerStatus struct {
	// Conditions of the peer: Accepted, and Ready if every node that shall keep the
	// session has it.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
