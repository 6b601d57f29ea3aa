// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BFDProfile is a set of timers for bidirectional forwarding detection (RFC
// 5880) that BGPPeers name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=bfdprofiles,singular=bfdprofile,shortName=bfdp,categories=slb
// +kubebuilder:printcolumn:name="Receive",type=integer,JSONPath=`.spec.receiveInterval`
// +kubebuilder:printcolumn:name="Transmit",type=integer,JSONPath=`.spec.transmitInterval`
// +kubebuilder:printcolumn:name="Multiplier",type=integer,JSONPath=`.spec.detectMultiplier`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BFDProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec BFDProfileSpec `json:"spec,omitempty"`
	// +optional
	Status BFDProfileStatus `json:"status,omitempty"`
}

// BFDProfileList is a list of profiles.
//
// +kubebuilder:object:root=true
type BFDProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BFDProfile `json:"items"`
}

// BFDProfileSpec holds the timers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.echoMode) || !self.echoMode",message="echoMode: true is not supported: BFD runs in asynchronous mode without the echo function (RFC 5880 section 6.4)"
type BFDProfileSpec struct {
	// ReceiveInterval in milliseconds is how often we can take a packet, 10 to 60000.
	// Default 300.
	//
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	ReceiveInterval int32 `json:"receiveInterval,omitempty"`

	// TransmitInterval in milliseconds is how often we send a packet if the peer can
	// take that, 10 to 60000. Default 300.
	//
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	TransmitInterval int32 `json:"transmitInterval,omitempty"`

	// DetectMultiplier is how many packets in a row must be missing, 2 to 255.
	// Default 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=255
	DetectMultiplier int32 `json:"detectMultiplier,omitempty"`

	// PassiveMode waits for the peer's first packet (RFC 5880 section 6.1).
	// Default false.
	//
	// +optional
	PassiveMode bool `json:"passiveMode,omitempty"`

	// MinimumTTL a packet of a multihop session must still have, 1 to 254 (RFC 5883).
	// Default 254.
	//
	// +optional
	// +kubebuilder:default=254
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	MinimumTTL int32 `json:"minimumTtl,omitempty"`

	// EchoMode is MetalLB's field for the echo function (RFC 5880 section 6.4), which there is not: true is refused, so
	// that it is not ignored. Default false.
	//
	// +optional
	EchoMode bool `json:"echoMode,omitempty"`

	// EchoInterval in milliseconds is MetalLB's field for the interval of the echo function. Any value is refused.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != self",message="echoInterval is not supported: there is no echo function (echoMode), so it would have no effect"
	EchoInterval *int32 `json:"echoInterval,omitempty"`
}

// BFDProfileStatus is what the controller saw last.
type BFDProfileStatus struct {
	// Conditions of the profile: Accepted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
