// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// discovered watches objects while the API server has a kind of another project. Without the kind, nothing is read.
type discovered struct {
	// versions are the known versions of the kind. Of those that the API server has, the first is read.
	versions []schema.GroupVersionResource
	kinds    discovery.ServerResourcesInterfaceWithContext
	pause    time.Duration
	// open returns an informer for the objects. lost is called when the kind was removed, and before another version is
	// read; changed when all objects have been read or the kind is known not to exist.
	open          func(schema.GroupVersionResource) cache.Controller
	lost, changed func()
	// reads is the resource that open reads, if it is another one than the kind.
	reads string
	// discovery are the attempts to find out whether the API server has the kind.
	discovery attempts
	// version is the version that is read, nil while the kind does not exist.
	version atomic.Pointer[schema.GroupVersionResource]
	// informer is the informer while the kind exists.
	informer atomic.Pointer[cache.Controller]
	// synced is closed once the objects have been read, or the kind is known not to exist.
	synced     chan struct{}
	markSynced func()
}

func newDiscovered(kube kubernetes.Interface, kind schema.GroupVersionResource, pause time.Duration,
	open func() cache.Controller, lost, changed func()) *discovered {
	return newDiscoveredVersions(kube, []schema.GroupVersionResource{kind}, pause,
		func(schema.GroupVersionResource) cache.Controller { return open() }, lost, changed)
}

func newDiscoveredVersions(kube kubernetes.Interface, versions []schema.GroupVersionResource, pause time.Duration,
	open func(schema.GroupVersionResource) cache.Controller, lost, changed func()) *discovered {
	synced := make(chan struct{})
	return &discovered{versions: versions, kinds: discovery.ToServerResourcesInterfaceWithContext(kube.Discovery()),
		pause: pause, open: open, lost: lost, changed: changed, synced: synced,
		markSynced: sync.OnceFunc(func() { close(synced) })}
}

// newDiscoveredNetwork watches the single object of one of OpenShift's kinds. set is called with the object, or nil if
// the object or the kind was removed.
func newDiscoveredNetwork(kube kubernetes.Interface, kind schema.GroupVersionResource,
	client lister[*unstructured.UnstructuredList], pause time.Duration, set func(*unstructured.Unstructured)) *discovered {
	open := func() cache.Controller {
		return newInformer(only[*unstructured.UnstructuredList]{client, openShiftNetwork}, &unstructured.Unstructured{},
			whole[*unstructured.Unstructured], func(_, now *unstructured.Unstructured) { set(now) })
	}
	return newDiscovered(kube, kind, pause, open, func() { set(nil) }, func() {})
}

func (d *discovered) String() string { return d.versions[0].GroupResource().String() }

// refused returns the last error of the API server about a kind that exists, as ": " and its text; empty without one.
func (d *discovered) refused() string {
	if c := d.informer.Load(); c != nil {
		if i, ok := (*c).(*informer); ok {
			if why := i.attempts.lastError(); why != "" {
				return ": " + why
			}
		}
	}
	return ""
}

// unread returns why neither the objects nor whether the kind exists could be read for two minutes. It is empty if they
// could.
func (d *discovered) unread() string {
	if c := d.informer.Load(); c != nil {
		if i, ok := (*c).(*informer); ok {
			return i.attempts.unread()
		}
	}
	return d.discovery.unread()
}

// absent reports whether the API server is known not to have the kind.
func (d *discovered) absent() bool {
	if d.informer.Load() != nil {
		return false
	}
	select {
	case <-d.synced:
		return true
	default:
		return false
	}
}

// hasSynced reports whether the objects were read, or the kind is known not to exist. It becomes false again while a
// kind that was added later is being read.
func (d *discovered) hasSynced() bool {
	if informer := d.informer.Load(); informer != nil {
		// HasSynced waits for the informer, which may be calling a function that waits for our caller's lock.
		select {
		case <-(*informer).HasSyncedChecker().Done():
			return true
		default:
			return false
		}
	}
	return d.absent()
}

func (d *discovered) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		served, there, err := d.served(ctx)
		if err != nil {
			klog.V(2).InfoS("Failed to discover APIs, will retry", "kind", d, "err", err)
			timer.Reset(discoveryRetry)
			continue
		}
		if following := d.version.Load(); following != nil && (!there || served != *following) {
			stop()
			d.version.Store(nil)
			d.informer.Store(nil)
			d.lost()
		}
		if there && d.version.Load() == nil {
			stop = d.watch(ctx, served)
		}
		if !there {
			d.markSynced()
			d.changed()
		}
		timer.Reset(d.pause)
	}
}

// watch watches the objects until the returned function is called, which waits for the informer to stop.
func (d *discovered) watch(ctx context.Context, version schema.GroupVersionResource) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	informer := d.open(version)
	d.version.Store(&version)
	d.informer.Store(&informer)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		if WaitForInformer(ctx, informer) {
			d.markSynced()
			d.changed()
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// served returns the first known version that the API server has.
func (d *discovered) served(ctx context.Context) (version schema.GroupVersionResource, there bool, err error) {
	d.discovery.begin()
	defer func() { _ = d.discovery.end(err) }() // run logs it
	for _, version := range d.versions {
		if there, err := hasResource(ctx, d.kinds, version); there || err != nil {
			return version, there, err
		}
	}
	return schema.GroupVersionResource{}, false, nil
}

func hasResource(ctx context.Context, kinds discovery.ServerResourcesInterfaceWithContext,
	kind schema.GroupVersionResource) (bool, error) {
	list, err := kinds.ServerResourcesForGroupVersionWithContext(ctx, kind.GroupVersion().String())
	if errors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource }), nil
}
