// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BFDProfile is a set of timers for Bidirectional Forwarding Detection (RFC 5880). BGPPeers refer to it by name.
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

// BFDProfileList is a list of BFDProfiles.
//
// +kubebuilder:object:root=true
type BFDProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BFDProfile `json:"items"`
}

// BFDProfileSpec defines the timers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.echoMode) || !self.echoMode",message="echoMode: true is not supported: BFD runs in asynchronous mode without the echo function (RFC 5880 section 6.4)"
type BFDProfileSpec struct {
	// receiveInterval is the minimum interval in milliseconds between BFD packets that the node can receive, 10 to
	// 60000. Defaults to 300.
	//
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	ReceiveInterval int32 `json:"receiveInterval,omitempty"`

	// transmitInterval is the minimum interval in milliseconds between BFD packets that the node sends, 10 to 60000.
	// The node sends less often if the peer requires it. Defaults to 300.
	//
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	TransmitInterval int32 `json:"transmitInterval,omitempty"`

	// detectMultiplier is the number of consecutive packets that must be missing before the session is down, 2 to 255.
	// Defaults to 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=255
	DetectMultiplier int32 `json:"detectMultiplier,omitempty"`

	// passiveMode makes the node wait for the peer's first packet before it sends packets (RFC 5880 section 6.1).
	// Defaults to false.
	//
	// +optional
	PassiveMode bool `json:"passiveMode,omitempty"`

	// minimumTtl is the minimum TTL of a received packet of a multihop session, 1 to 254 (RFC 5883). Defaults to 254.
	//
	// +optional
	// +kubebuilder:default=254
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	MinimumTTL int32 `json:"minimumTtl,omitempty"`

	// echoMode is MetalLB's field for the echo function (RFC 5880 section 6.4), which is not supported. The value true
	// is rejected, so that it is not silently ignored. Defaults to false.
	//
	// +optional
	EchoMode bool `json:"echoMode,omitempty"`

	// echoInterval is MetalLB's field for the interval of the echo function, in milliseconds. Any value is rejected.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != self",message="echoInterval is not supported: there is no echo function (echoMode), so it would have no effect"
	EchoInterval *int32 `json:"echoInterval,omitempty"`
}

// BFDProfileStatus is the most recently observed status of a BFDProfile.
type BFDProfileStatus struct {
	// conditions represent the current state of the profile: Accepted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
