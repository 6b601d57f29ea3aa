// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// NewPlanInformer returns an informer for ServicePlans. It calls on as newInformer does.
func NewPlanInformer(ours *Clients, on func(old, now *v1alpha1.ServicePlan)) cache.Controller {
	return newInformer(ours.Plans, &v1alpha1.ServicePlan{}, whole[*v1alpha1.ServicePlan], on)
}

// informer is a controller that knows why it can't read anything.
type informer struct {
	cache.Controller
	attempts attempts
}

// Unread returns which of some informers, by resource, have not read the objects that existed at the start, each with
// the last error of the API server, as one that forbids to list them: the manifests of another flavour may grant less
// than this process needs. It returns nil if all have.
func Unread(informers map[string]cache.Controller) (unread []string) {
	for _, resource := range slices.Sorted(maps.Keys(informers)) {
		c := informers[resource]
		if c.HasSynced() {
			continue
		}
		if i, ok := c.(*informer); ok {
			if why := i.attempts.lastError(); why != "" {
				resource += " (" + why + ")"
			}
		}
		unread = append(unread, resource)
	}
	return unread
}

// WaitForInformer returns true once an informer has read the objects that existed at the start, and false if ctx is
// done first. It does not poll: what follows the reading does not depend on when a check happens to come.
func WaitForInformer(ctx context.Context, c cache.Controller) bool {
	return cache.WaitFor(ctx, "", c.HasSyncedChecker())
}

// NewNodeInformer returns an informer for all Nodes. It calls on as newInformer does.
func NewNodeInformer(kube kubernetes.Interface, on func(old, now *corev1.Node)) cache.Controller {
	return newInformer(kube.CoreV1().Nodes(), &corev1.Node{}, trimmedNode, on)
}

// NewDomainInformer returns an informer for L2Domains. It calls on as newInformer does.
func NewDomainInformer(ours *Clients, on func(old, now *v1alpha1.L2Domain)) cache.Controller {
	return newInformer(ours.Domains, &v1alpha1.L2Domain{}, whole[*v1alpha1.L2Domain], on)
}

// NewNetworkConfigInformer returns an informer for Network "cluster" of config.openshift.io, which only OpenShift has.
// It calls on as newInformer does.
func NewNetworkConfigInformer(ours *Clients, on func(old, now *unstructured.Unstructured)) cache.Controller {
	return newInformer(only[*unstructured.UnstructuredList]{ours.NetworkConfigs, openShiftNetwork},
		&unstructured.Unstructured{}, whole[*unstructured.Unstructured], on)
}

// NewOneNodeInformer returns an informer for one Node. It calls on as newInformer does.
func NewOneNodeInformer(kube kubernetes.Interface, name string, on func(old, now *corev1.Node)) cache.Controller {
	return newInformer(only[*corev1.NodeList]{kube.CoreV1().Nodes(), name}, &corev1.Node{}, whole[*corev1.Node], on)
}

// NewOneLeaseInformer returns an informer for one Lease. It calls on as newInformer does.
func NewOneLeaseInformer(leases coordinationclient.LeaseInterface, name string,
	on func(old, now *coordinationv1.Lease)) cache.Controller {
	return newInformer(only[*coordinationv1.LeaseList]{leases, name}, &coordinationv1.Lease{},
		whole[*coordinationv1.Lease], on)
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

// IsWatchListSemanticsUnSupported tells client-go whether the client can stream the initial objects of a watch, which
// fake ones can't.
func (o only[L]) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(o.lister)
}

func (o only[L]) Watch(ctx context.Context, given metav1.ListOptions) (watch.Interface, error) {
	return o.lister.Watch(ctx, o.options(given))
}

// optional returns a client that lists nothing as long as the API server does not have the kind and never had it: a
// CustomResourceDefinition that was lost or not installed must not stop what does not need it. Once the kind was there,
// its absence is an error, and what was read stays. For a kind that is needed it returns the client itself.
func optional[L runtime.Object](client lister[L], kind string, needed bool) lister[L] {
	if needed {
		return client
	}
	return &optionalKind[L]{lister: client, kind: kind}
}

type optionalKind[L runtime.Object] struct {
	lister[L]
	kind string
	had  atomic.Bool
}

func (k *optionalKind[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	list, err := k.lister.List(ctx, o)
	switch {
	case err == nil:
		k.had.Store(true)
	case apierrors.IsNotFound(err) && !k.had.Load():
		klog.ErrorS(err, "Continuing without a kind: is its CustomResourceDefinition installed?", "kind", k.kind)
		none, _ := reflect.New(reflect.TypeFor[L]().Elem()).Interface().(L) // L is a pointer to a list
		return none, nil
	}
	return list, err
}

// Watch returns a watch without events, which ends after absentPause, as long as the kind is absent. A watch that is to
// deliver the initial objects fails instead, so that client-go lists them.
func (k *optionalKind[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := k.lister.Watch(ctx, o)
	if apierrors.IsNotFound(err) && !k.had.Load() && o.SendInitialEvents == nil {
		none := watch.NewFake()
		time.AfterFunc(absentPause, none.Stop)
		return none, nil
	}
	if err == nil {
		k.had.Store(true)
	}
	return w, err
}

// absentPause is the time between two attempts to read an absent kind.
const absentPause = 30 * time.Second

// IsWatchListSemanticsUnSupported is that of the client.
func (k *optionalKind[L]) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(k.lister)
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
	made := &informer{}
	_, made.Controller = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				// Without watch lists, client-go lists with resourceVersion "0", for which the API server may return
				// outdated data from its cache. With outdated data, a new leader would allocate addresses that other
				// Services already have.
				if o.ResourceVersion == "0" {
					o.ResourceVersion = ""
				}
				made.attempts.begin()
				list, err := client.List(ctx, o)
				if err != nil {
					return nil, made.attempts.end(err)
				}
				page, err := trimmed(list, trim)
				if err != nil || page.Continue == "" {
					return page, made.attempts.end(err)
				}
				return page, nil
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				made.attempts.begin()
				w, err := client.Watch(ctx, o)
				if err == nil && o.SendInitialEvents != nil && *o.SendInitialEvents {
					return made.attempts.observe(w), nil
				}
				return w, made.attempts.end(err)
			},
		}, client),
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
	return made
}

// trimmed returns a page of a list with trimmed objects. The informer itself trims objects only when it has all pages,
// and untrimmed EndpointSlices need many times the memory of trimmed ones.
func trimmed(page runtime.Object, trim func(runtime.Object) runtime.Object) (*internalversion.List, error) {
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
