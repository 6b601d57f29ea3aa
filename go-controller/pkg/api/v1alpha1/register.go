// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of all kinds of this package.
	GroupName = "slb.k8s.ovn.org"
	// Version is the API version of all kinds of this package.
	Version = "v1alpha1"
)

// GroupVersion returns the group and version of the kinds.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// Resource qualifies a plural resource name ("ipaddresspools") with the group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion().WithResource(resource).GroupResource()
}

// AddToScheme registers the kinds with a scheme, for client-go's codecs and for clients built on them.
func AddToScheme(s *runtime.Scheme) error {
	builder := SchemeBuilder()
	return builder.AddToScheme(s)
}

// SchemeBuilder returns the builder that registers the kinds, for clients that combine several API groups in one
// scheme. It is a function so that the package has no state that an importer could change.
func SchemeBuilder() runtime.SchemeBuilder {
	return runtime.NewSchemeBuilder(addKnownTypes)
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&IPAddressPool{}, &IPAddressPoolList{},
		&L2Domain{}, &L2DomainList{},
		&BGPPeer{}, &BGPPeerList{},
		&BGPAdvertisement{}, &BGPAdvertisementList{},
		&BFDProfile{}, &BFDProfileList{},
		&Community{}, &CommunityList{},
		&BGPNodeStatus{}, &BGPNodeStatusList{},
		&ServicePlan{}, &ServicePlanList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
