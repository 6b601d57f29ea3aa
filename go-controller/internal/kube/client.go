// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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
}

// NewClients returns clients for the API server of config. They use JSON.
func NewClients(config *rest.Config) (*Clients, error) {
	openShift, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for OpenShift's kinds: %w", err)
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
		NetworkConfigs:   openShift.Resource(networkConfigs()),
		NetworkOperators: openShift.Resource(networkOperators()),
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

// lister has the methods that all typed clients share.
type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// only lists and watches a single object by name.
type only[L runtime.Object] struct {
	lister[L]
	name string
}

func (o only[L]) options(given metav1.ListOptions) metav1.ListOptions {
	given.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.name).String()
	return given
}

func (o only[L]) List(ctx context.Context, given metav1.ListOptions) (L, error) {
	return o.lister.List(ctx, o.options(given))
}

func (o only[L]) Watch(ctx context.Context, given metav1.ListOptions) (watch.Interface, error) {
	return o.lister.Watch(ctx, o.options(given))
}

// object is an API object with metadata.
type object interface {
	runtime.Object
	metav1.Object
}

// whole returns an object unchanged.
func whole[T any](o T) T { return o }

// newInformer returns an informer that calls on, from one goroutine, for each object that was added (no old), changed,
// or deleted (no now). The informer stores, and passes to on, the result of keep, which must have the name, namespace
// and version of the object. Calling keep again on its result must return the same result.
func newInformer[T, K object, L runtime.Object](client lister[L], empty T, keep func(T) K,
	on func(old, now K)) cache.Controller {
	var none K
	trim := func(o runtime.Object) runtime.Object {
		if t, ok := o.(T); ok {
			t.SetManagedFields(nil)
			return keep(t)
		}
		return o // already converted by keep
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				// Without watch lists, client-go lists with resourceVersion "0", for which the API server may return
				// outdated data from its cache. With outdated data, a new leader would allocate addresses that other
				// Services already have.
				if o.ResourceVersion == "0" {
					o.ResourceVersion = ""
				}
				page, err := client.List(ctx, o)
				if err != nil {
					return nil, err
				}
				return trimmed(page, trim)
			},
			WatchFuncWithContext: client.Watch,
		},
		ObjectType: empty,
		Transform: func(o any) (any, error) {
			if r, ok := o.(runtime.Object); ok {
				return trim(r), nil
			}
			return o, nil
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { on(none, o.(K)) },
			UpdateFunc: func(old, now any) {
				// A relist also calls this for unchanged objects.
				if old.(K).GetResourceVersion() != now.(K).GetResourceVersion() {
					on(old.(K), now.(K))
				}
			},
			DeleteFunc: func(o any) {
				if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = unknown.Obj
				}
				if k, ok := o.(K); ok {
					on(k, none)
				}
			},
		},
	})
	return controller
}

// trimmed returns a page of a list with trimmed objects. The informer itself trims objects only when it has all pages,
// and untrimmed EndpointSlices need many times the memory of trimmed ones.
func trimmed(page runtime.Object, trim func(runtime.Object) runtime.Object) (runtime.Object, error) {
	from, err := meta.ListAccessor(page)
	if err != nil {
		return nil, fmt.Errorf("read a page of a list: %w", err)
	}
	out := &internalversion.List{Items: make([]runtime.Object, 0, meta.LenList(page))}
	out.ResourceVersion, out.Continue = from.GetResourceVersion(), from.GetContinue()
	out.RemainingItemCount = from.GetRemainingItemCount()
	err = meta.EachListItemWithAlloc(page, func(o runtime.Object) error {
		out.Items = append(out.Items, trim(o))
		return nil
	})
	return out, err
}
