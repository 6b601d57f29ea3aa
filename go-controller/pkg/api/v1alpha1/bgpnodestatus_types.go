// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPNodeStatus is what the BGP speaker of one node sees. It has the node's name, is
// written by that node only and goes with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=bgpnodestatuses,singular=bgpnodestatus,shortName=bgpns,categories=slb
// +kubebuilder:printcolumn:name="RouterID",type=string,JSONPath=`.status.routerID`
// +kubebuilder:printcolumn:name="Sessions",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BGPNodeStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status BGPNodeStatusStatus `json:"status,omitempty"`
}

// BGPNodeStatusList is a list of the nodes' reports.
//
// +kubebuilder:object:root=true
type BGPNodeStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPNodeStatus `json:"items"`
}

// BGPNodeStatusStatus is the report.
type BGPNodeStatusStatus struct {
	// RouterID of the speaker, written as an IPv4 address.
	//
	// +optional
	RouterID string `json:"routerID,omitempty"`

	// Sessions with the peers, by the name of the BGPPeer.
	//
	// +optional
	// +listType=map
	// +listMapKey=peer
	Sessions []BGPSession `json:"sessions,omitempty"`

	// Summary has the peers and the states of their sessions, as "tor Established, spine Active".
	//
	// +optional
	Summary string `json:"summary,omitempty"`

	// Conditions of the speaker: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BGPSessionState is a state of RFC 4271 section 8.2.2.
//
// +kubebuilder:validation:Enum=Idle;Connect;Active;OpenSent;OpenConfirm;Established
type BGPSessionState string

// States of a session, in the order in which one is built.
const (
	BGPIdle        BGPSessionState = "Idle"
	BGPConnect     BGPSessionState = "Connect"
	BGPActive      BGPSessionState = "Active"
	BGPOpenSent    BGPSessionState = "OpenSent"
	BGPOpenConfirm BGPSessionState = "OpenConfirm"
	BGPEstablished BGPSessionState = "Established"
)

// BFDSessionState is a state of RFC 5880 section 6.2.
//
// +kubebuilder:validation:Enum=AdminDown;Down;Init;Up
type BFDSessionState string

// States of a BFD session.
const (
	BFDAdminDown BFDSessionState = "AdminDown"
	BFDDown      BFDSessionState = "Down"
	BFDInit      BFDSessionState = "Init"
	BFDUp        BFDSessionState = "Up"
)

// BGPSession is one session as this node sees it.
type BGPSession struct {
	// Peer is the name of the BGPPeer.
	//
	// +required
	Peer string `json:"peer"`

	// PeerAddress that is dialled.
	//
	// +optional
	PeerAddress string `json:"peerAddress,omitempty"`

	// LocalAddress of the session.
	//
	// +optional
	LocalAddress string `json:"localAddress,omitempty"`

	// PeerASN that the peer told.
	//
	// +optional
	PeerASN int64 `json:"peerASN,omitempty"`

	// State of the session.
	//
	// +required
	State BGPSessionState `json:"state"`

	// Since is when the session came into this state.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// BFD is the state of the BFD session with the peer; absent without BFD.
	//
	// +optional
	BFD BFDSessionState `json:"bfd,omitempty"`

	// AdvertisedIPv4 is how many IPv4 prefixes the peer is told.
	//
	// +optional
	AdvertisedIPv4 int64 `json:"advertisedIPv4"`

	// AdvertisedIPv6 is how many IPv6 prefixes the peer is told.
	//
	// +optional
	AdvertisedIPv6 int64 `json:"advertisedIPv6"`

	// LastError is why the session went down or does not come up.
	//
	// +optional
	LastError string `json:"lastError,omitempty"`

	// LastErrorTime is when that was.
	//
	// +optional
	LastErrorTime *metav1.Time `json:"lastErrorTime,omitempty"`
}
