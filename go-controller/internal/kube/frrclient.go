// SPDX-License-Identifier: Apache-2.0

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
)

// FRRClients are the clients for the kinds of frr-k8s.
type FRRClients struct {
	Configurations *gentype.ClientWithList[*frr.Configuration, *frr.ConfigurationList]
	NodeStates     *gentype.ClientWithList[*frr.NodeState, *frr.NodeStateList]
	SessionStates  *gentype.ClientWithList[*frr.SessionState, *frr.SessionStateList]
	// RouteAdvertisements are those of OVN-Kubernetes, which have no namespace.
	RouteAdvertisements *gentype.ClientWithList[*frr.RouteAdvertisements, *frr.RouteAdvertisementsList]
}

// NewFRRClients returns clients for objects of a namespace, or of all with an empty one.
func NewFRRClients(config *rest.Config, namespace string) (*FRRClients, error) {
	scheme, version := runtime.NewScheme(), frr.GroupVersion()
	scheme.AddKnownTypeWithName(version.WithKind(frr.KindConfiguration), &frr.Configuration{})
	scheme.AddKnownTypeWithName(version.WithKind(frr.KindConfiguration+"List"), &frr.ConfigurationList{})
	scheme.AddKnownTypeWithName(version.WithKind("FRRNodeState"), &frr.NodeState{})
	scheme.AddKnownTypeWithName(version.WithKind("FRRNodeStateList"), &frr.NodeStateList{})
	scheme.AddKnownTypeWithName(version.WithKind("BGPSessionState"), &frr.SessionState{})
	scheme.AddKnownTypeWithName(version.WithKind("BGPSessionStateList"), &frr.SessionStateList{})
	ovnk := frr.RouteAdvertisementsResource().GroupVersion()
	scheme.AddKnownTypeWithName(ovnk.WithKind("RouteAdvertisements"), &frr.RouteAdvertisements{})
	scheme.AddKnownTypeWithName(ovnk.WithKind("RouteAdvertisementsList"), &frr.RouteAdvertisementsList{})
	client, err := restClient(config, version, scheme)
	if err != nil {
		return nil, err
	}
	ovnkClient, err := restClient(config, ovnk, scheme)
	if err != nil {
		return nil, err
	}
	codec := runtime.NewParameterCodec(scheme)
	return &FRRClients{
		Configurations: gentype.NewClientWithList(frr.Configurations, client, codec, namespace,
			func() *frr.Configuration { return &frr.Configuration{} },
			func() *frr.ConfigurationList { return &frr.ConfigurationList{} }),
		NodeStates: gentype.NewClientWithList(frr.NodeStates, client, codec, "",
			func() *frr.NodeState { return &frr.NodeState{} }, func() *frr.NodeStateList { return &frr.NodeStateList{} }),
		SessionStates: gentype.NewClientWithList(frr.SessionStates, client, codec, namespace,
			func() *frr.SessionState { return &frr.SessionState{} },
			func() *frr.SessionStateList { return &frr.SessionStateList{} }),
		RouteAdvertisements: gentype.NewClientWithList(frr.RouteAdvertisementsResource().Resource, ovnkClient, codec, "",
			func() *frr.RouteAdvertisements { return &frr.RouteAdvertisements{} },
			func() *frr.RouteAdvertisementsList { return &frr.RouteAdvertisementsList{} }),
	}, nil
}

func restClient(config *rest.Config, version schema.GroupVersion, scheme *runtime.Scheme) (*rest.RESTClient, error) {
	metav1.AddToGroupVersion(scheme, version)
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
