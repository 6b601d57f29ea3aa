// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
)

// report sets the value of an annotation. The report is urgent unless it is empty.
func report[M ~map[K]V, K comparable, V any](r *nodelease.Reporter, annotation string, what M) {
	write(r, annotation, what, len(what) > 0)
}

// write encodes and reports a value.
func write(r *nodelease.Reporter, annotation string, what any, grave bool) {
	text, err := json.Marshal(what)
	if err != nil {
		klog.ErrorS(err, "Failed to encode a report", "annotation", annotation)
		return
	}
	r.Report(annotation, string(text), grave)
}

// follow calls observe with each version of a node's Lease, and deleted when it was deleted, until the context
// ends.
func follow(ctx context.Context, leases coordinationclient.LeaseInterface, node string,
	observe func(*coordinationv1.Lease), deleted func()) {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
		return o
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return leases.List(ctx, only(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return leases.Watch(ctx, only(o))
			},
		}, leases),
		ObjectType: &coordinationv1.Lease{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { observe(o.(*coordinationv1.Lease)) },
			UpdateFunc: func(_, o any) { observe(o.(*coordinationv1.Lease)) },
			DeleteFunc: func(any) { deleted() },
		},
	})
	informer.RunWithContext(ctx)
}
