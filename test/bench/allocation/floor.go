// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// bareWrites does the minimum that any controller must do: an informer on Services, and one status write per Service,
// 16 at a time. If give is true, it writes an address to each Service without one; otherwise it removes the addresses.
// The returned function stops it.
func (c *cluster) bareWrites(ctx context.Context, give bool) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	queue := workqueue.NewTyped[*corev1.Service]()
	factory := informers.NewSharedInformerFactory(c.client, 0)
	informer := factory.Core().V1().Services().Informer()
	offer := func(o any) {
		if s := o.(*corev1.Service); s.Namespace == namespace && (len(s.Status.LoadBalancer.Ingress) == 0) == give {
			queue.Add(s)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: offer, UpdateFunc: func(_, now any) { offer(now) }})
	var mu sync.Mutex
	addr := netip.MustParseAddr("10.61.0.0")
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for {
				s, down := queue.Get()
				if down {
					return
				}
				var ingress []corev1.LoadBalancerIngress
				if give {
					mode := corev1.LoadBalancerIPModeVIP
					mu.Lock()
					addr = addr.Next()
					ingress = []corev1.LoadBalancerIngress{{IP: addr.String(), IPMode: &mode}}
					mu.Unlock()
				}
				s = s.DeepCopy()
				s.Status = corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}
				_, failed := c.client.CoreV1().Services(namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{})
				if failed != nil && ctx.Err() == nil && !apierrors.IsConflict(failed) {
					mu.Lock()
					err = errors.Join(err, failed)
					mu.Unlock()
				}
				queue.Done(s)
			}
		})
	}
	factory.Start(ctx.Done())
	return func() error {
		cancel()
		queue.ShutDown()
		running.Wait()
		factory.Shutdown()
		return err
	}
}

// gone ignores NotFound errors of a deletion.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
