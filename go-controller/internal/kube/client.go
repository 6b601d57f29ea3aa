// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Clients are the clients for the kinds of our own group, and for two of OpenShift's kinds.
type Clients struct {
	Pools          *gentype.ClientWithList[*v1alpha1.IPAddressPool, *v1alpha1.IPAddressPoolList]
	Domains        *gentype.ClientWithList[*v1alpha1.L2Domain, *v1alpha1.L2DomainList]
	Peers          *gentype.ClientWithList[*v1alpha1.BGPPeer, *v1alpha1.BGPPeerList]
	Advertisements *gentype.ClientWithList[*v1alpha1.BGPAdvertisement, *v1alpha1.BGPAdvertisementList]
	Profiles       *gentype.ClientWithList[*v1alpha1.BFDProfile, *v1alpha1.BFDProfileList]
	Communities    *gentype.ClientWithList[*v1alpha1.Community, *v1alpha1.CommunityList]
	NodeStatuses   *gentype.ClientWithList[*v1alpha1.BGPNodeStatus, *v1alpha1.BGPNodeStatusList]
	Plans          *gentype.ClientWithList[*v1alpha1.ServicePlan, *v1alpha1.ServicePlanList]
	// NetworkConfigs and NetworkOperators are OpenShift's kinds, which other clusters do not have.
	NetworkConfigs, NetworkOperators dynamic.ResourceInterface
	// FRR are those for the kinds of frr-k8s in FRRNamespace, or nil if it is not used.
	FRR          *FRRClients
	FRRNamespace string
	// Dynamic is the client for kinds of OVN-Kubernetes, and of Cluster API, whose versions differ among clusters.
	// ClaimNamespace is the namespace of IPAddressClaims, the controller's own; empty if it creates none.
	Dynamic        dynamic.Interface
	ClaimNamespace string
}

// UseFRR adds clients for the kinds of frr-k8s in a namespace. An empty namespace adds none.
func (c *Clients) UseFRR(config *rest.Config, namespace string) error {
	if namespace == "" {
		return nil
	}
	return c.ReadFRR(config, namespace)
}

// ReadFRR adds clients for the kinds of frr-k8s in a namespace, all if it is empty.
func (c *Clients) ReadFRR(config *rest.Config, namespace string) error {
	var err error
	if c.FRR, err = NewFRRClients(config, namespace); err != nil {
		return fmt.Errorf("client for %s: %w", frr.GroupVersion(), err)
	}
	c.FRRNamespace = namespace
	return nil
}

// NewClients returns clients for the API server of config. They use JSON.
func NewClients(config *rest.Config) (*Clients, error) {
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for kinds of other projects: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", v1alpha1.GroupName, err)
	}
	version := v1alpha1.GroupVersion()
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", v1alpha1.GroupName, err)
	}
	codec := runtime.NewParameterCodec(scheme)
	return &Clients{
		Dynamic:          others,
		NetworkConfigs:   others.Resource(networkConfigs()),
		NetworkOperators: others.Resource(networkOperators()),
		Pools: gentype.NewClientWithList("ipaddresspools", client, codec, "",
			func() *v1alpha1.IPAddressPool { return &v1alpha1.IPAddressPool{} },
			func() *v1alpha1.IPAddressPoolList { return &v1alpha1.IPAddressPoolList{} }),
		Domains: gentype.NewClientWithList("l2domains", client, codec, "",
			func() *v1alpha1.L2Domain { return &v1alpha1.L2Domain{} },
			func() *v1alpha1.L2DomainList { return &v1alpha1.L2DomainList{} }),
		Peers: gentype.NewClientWithList("bgppeers", client, codec, "",
			func() *v1alpha1.BGPPeer { return &v1alpha1.BGPPeer{} },
			func() *v1alpha1.BGPPeerList { return &v1alpha1.BGPPeerList{} }),
		Advertisements: gentype.NewClientWithList("bgpadvertisements", client, codec, "",
			func() *v1alpha1.BGPAdvertisement { return &v1alpha1.BGPAdvertisement{} },
			func() *v1alpha1.BGPAdvertisementList { return &v1alpha1.BGPAdvertisementList{} }),
		Profiles: gentype.NewClientWithList("bfdprofiles", client, codec, "",
			func() *v1alpha1.BFDProfile { return &v1alpha1.BFDProfile{} },
			func() *v1alpha1.BFDProfileList { return &v1alpha1.BFDProfileList{} }),
		Communities: gentype.NewClientWithList("communities", client, codec, "",
			func() *v1alpha1.Community { return &v1alpha1.Community{} },
			func() *v1alpha1.CommunityList { return &v1alpha1.CommunityList{} }),
		NodeStatuses: gentype.NewClientWithList("bgpnodestatuses", client, codec, "",
			func() *v1alpha1.BGPNodeStatus { return &v1alpha1.BGPNodeStatus{} },
			func() *v1alpha1.BGPNodeStatusList { return &v1alpha1.BGPNodeStatusList{} }),
		Plans: gentype.NewClientWithList("serviceplans", client, codec, "",
			func() *v1alpha1.ServicePlan { return &v1alpha1.ServicePlan{} },
			func() *v1alpha1.ServicePlanList { return &v1alpha1.ServicePlanList{} }),
	}, nil
}
