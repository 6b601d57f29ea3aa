// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Community defines names for BGP communities, for use in BGPAdvertisements.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=communities,singular=community,shortName=bgpcomm,categories=slb
// +kubebuilder:printcolumn:name="Communities",type=string,JSONPath=`.status.communities`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Community struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CommunitySpec `json:"spec"`
	// +optional
	Status CommunityStatus `json:"status,omitempty"`
}

// CommunityList is a list of Communities.
//
// +kubebuilder:object:root=true
type CommunityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Community `json:"items"`
}

// CommunitySpec defines the names.
type CommunitySpec struct {
	// communities are the names and their values.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Communities []CommunityAlias `json:"communities"`
}

// CommunityAlias is one name and its value.
type CommunityAlias struct {
	// name is the name to use in BGPAdvertisements: lower-case letters, digits and dashes. It must begin with a letter and
	// must not be one of the well-known names.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$') && !(self in ['no-export', 'no-advertise', 'no-peer', 'blackhole', 'graceful-shutdown'])",messageExpression="'name: ' + self + ' is a well-known name or not made of lower-case letters, digits and dashes'"
	Name string `json:"name"`

	// value is a community, 65000:100 (RFC 1997) or large:65000:1:2 (RFC 8092).
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,5}:[0-9]{1,5}$') ? self.split(':').all(n, int(n) <= 65535) : self.matches('^large:[0-9]{1,10}:[0-9]{1,10}:[0-9]{1,10}$') && self.split(':').all(n, n == 'large' || int(n) <= 4294967295)",messageExpression="'value: ' + self + ' is no community: two numbers up to 65535 (65000:100) or large: and three up to 4294967295 (large:65000:1:2)'"
	Value string `json:"value"`
}

// CommunityRef is a community or the name of a community.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,5}:[0-9]{1,5}$') ? self.split(':').all(n, int(n) <= 65535) : self.matches('^large:[0-9]{1,10}:[0-9]{1,10}:[0-9]{1,10}$') ? self.split(':').all(n, n == 'large' || int(n) <= 4294967295) : self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",messageExpression="self + ' is no community: two numbers up to 65535 (65000:100), large: and three up to 4294967295 (large:65000:1:2), or a name'"
type CommunityRef string

// CommunityStatus is the most recently observed status of a Community.
type CommunityStatus struct {
	// communities are the names and values of spec.communities as text for kubectl get, which prints lists as JSON: the
	// first ones, and how many follow, for example "customers=65000:100 and 2 more".
	//
	// +optional
	Communities string `json:"communities,omitempty"`

	// conditions represent the current state of the object: Accepted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
