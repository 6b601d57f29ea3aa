// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPNodeStatus is the status of the BGP speaker of one node. It has the name of the node, is written only by that node
// and is deleted with it.
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

// BGPNodeStatusList is a list of BGPNodeStatuses.
//
// +kubebuilder:object:root=true
type BGPNodeStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPNodeStatus `json:"items"`
}

// BGPNodeStatusStatus is what the speaker reports.
type BGPNodeStatusStatus struct {
	// routerID is the BGP identifier of the speaker, in the form of an IPv4 address.
	//
	// +optional
	RouterID string `json:"routerID,omitempty"`

	// sessions are the sessions with the peers, by the name of the BGPPeer.
	//
	// +optional
	// +listType=map
	// +listMapKey=peer
	Sessions []BGPSession `json:"sessions,omitempty"`

	// summary lists the peers and the states of their sessions, for example "tor Established, spine Active".
	//
	// +optional
	Summary string `json:"summary,omitempty"`

	// stopTime is when the daemon was stopped that has written the report. It is absent while the daemon runs, and after
	// it was killed. Its sessions have ended. Those with graceful restart keep the state Established: their routers keep
	// the routes for up to 2 minutes.
	//
	// +optional
	StopTime *metav1.Time `json:"stopTime,omitempty"`

	// conditions represent the current state of the speaker: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BGPSessionState is a state of a BGP session (RFC 4271 section 8.2.2).
//
// +kubebuilder:validation:Enum=Idle;Connect;Active;OpenSent;OpenConfirm;Established
type BGPSessionState string

// States of a BGP session, in the order in which a session is established.
const (
	BGPIdle        BGPSessionState = "Idle"
	BGPConnect     BGPSessionState = "Connect"
	BGPActive      BGPSessionState = "Active"
	BGPOpenSent    BGPSessionState = "OpenSent"
	BGPOpenConfirm BGPSessionState = "OpenConfirm"
	BGPEstablished BGPSessionState = "Established"
)

// BFDSessionState is a state of a BFD session (RFC 5880 section 6.2).
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

// BGPErrorReason is what the last error of a session is about. It is absent if it is none of these.
//
// +kubebuilder:validation:Enum=WrongASN;Notification;NoAnswer;NotOnLink;Unreachable;BFDDown;NotNegotiated
type BGPErrorReason string

// Reasons of the last error of a session.
const (
	// BGPErrorWrongASN means that one side does not accept the AS number of the other.
	BGPErrorWrongASN BGPErrorReason = "WrongASN"
	// BGPErrorNotification means that the router has ended or refused the session by a NOTIFICATION (RFC 4271 section
	// 4.5) about anything else.
	BGPErrorNotification BGPErrorReason = "Notification"
	// BGPErrorNoAnswer means that the router does not answer, as with a wrong password (RFC 2385).
	BGPErrorNoAnswer BGPErrorReason = "NoAnswer"
	// BGPErrorNotOnLink means that the router does not answer and must be on a link of the node, and is not.
	BGPErrorNotOnLink BGPErrorReason = "NotOnLink"
	// BGPErrorUnreachable means that the node has no route to the router or not the sourceAddress of the BGPPeer, or that
	// nothing answers ARP or neighbor discovery.
	BGPErrorUnreachable BGPErrorReason = "Unreachable"
	// BGPErrorBFDDown means that the path to the router failed according to BFD.
	BGPErrorBFDDown BGPErrorReason = "BFDDown"
	// BGPErrorNotNegotiated means that an Established session lacks a family that has routes.
	BGPErrorNotNegotiated BGPErrorReason = "NotNegotiated"
)

// BGPSession is one session as seen by this node.
type BGPSession struct {
	// peer is the name of the BGPPeer.
	//
	// +required
	Peer string `json:"peer"`

	// peerAddress is the address to which the node connects.
	//
	// +optional
	PeerAddress string `json:"peerAddress,omitempty"`

	// localAddress is the local address of the session.
	//
	// +optional
	LocalAddress string `json:"localAddress,omitempty"`

	// peerASN is the AS number that the peer sent.
	//
	// +optional
	PeerASN int64 `json:"peerASN,omitempty"`

	// state is the state of the session. After a session that ended soon after it was established, the next one is
	// Established here only when it has lasted.
	//
	// +required
	State BGPSessionState `json:"state"`

	// since is the time at which the session entered this state.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// outdated is true while an Established session still has settings of before an edit of the BGPPeer: nodes close and
	// reopen such sessions one after the other.
	//
	// +optional
	Outdated bool `json:"outdated,omitempty"`

	// bfd is the state of the BFD session with the peer. It is absent without BFD.
	//
	// +optional
	BFD BFDSessionState `json:"bfd,omitempty"`

	// bfdError describes what prevents BFD packets from being sent or received, why those of the peer are rejected, or
	// that BFD has not come up although the session is Established. It follows up to half a minute later.
	//
	// +optional
	BFDError string `json:"bfdError,omitempty"`

	// families are the address families that both sides activated (RFC 4760), IPv4 or IPv6. Routes of other families are
	// not advertised. It is absent unless the session is Established; an empty list means no family.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	Families []string `json:"families,omitzero"`

	// advertisedIPv4 is the number of IPv4 prefixes advertised to the peer. It is reported up to 30 s late.
	//
	// +optional
	AdvertisedIPv4 int64 `json:"advertisedIPv4"`

	// advertisedIPv6 is the number of IPv6 prefixes advertised to the peer. It is reported up to 30 s late.
	//
	// +optional
	AdvertisedIPv6 int64 `json:"advertisedIPv6"`

	// lastError describes why the session went down or cannot be established, or which family with routes it does not
	// have.
	//
	// +optional
	LastError string `json:"lastError,omitempty"`

	// lastErrorReason is what lastError is about.
	//
	// +optional
	LastErrorReason BGPErrorReason `json:"lastErrorReason,omitempty"`

	// lastErrorTime is the time at which lastError occurred.
	//
	// +optional
	LastErrorTime *metav1.Time `json:"lastErrorTime,omitempty"`
}
