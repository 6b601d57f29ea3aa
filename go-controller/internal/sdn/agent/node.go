// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// watchNode sends each version of a Node to a channel, nil if it does not exist, until the context ends.
func watchNode(ctx context.Context, kube kubernetes.Interface, name string, to chan<- *corev1.Node) {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		return o
	}
	observe := func(n *corev1.Node) {
		select {
		case to <- n:
		case <-ctx.Done():
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				// Bypass the cache of the API server. With outdated data, an agent would add addresses again that it
				// had given up.
				o.ResourceVersion = ""
				return kube.CoreV1().Nodes().List(ctx, only(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return kube.CoreV1().Nodes().Watch(ctx, only(o))
			},
		},
		ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { observe(o.(*corev1.Node)) },
			UpdateFunc: func(_, o any) { observe(o.(*corev1.Node)) },
			DeleteFunc: func(any) { observe(nil) },
		},
	})
	informer.RunWithContext(ctx)
}
