// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
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
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
)

const (
	// openShiftNetworks are the kind, and openShiftNetwork the one object that says how OpenShift's network shall be.
	openShiftNetworks, openShiftNetwork = "networks", "cluster"
	// openShiftPause is the time between two looks whether the API server has that kind: a
	// plain cluster may be given it, and costs one small request each time.
	openShiftPause = 5 * time.Second
	// openShiftRetry is the time until the next look if the API server did not answer.
	openShiftRetry = time.Second
)

func openShiftVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "config.openshift.io", Version: "v1"}
}

// openShift follows the configuration of OpenShift's network as long as the API server
// has such a kind. Where it has none nothing is read.
type openShift struct {
	kinds  discovery.ServerResourcesInterfaceWithContext
	client lister[*unstructured.UnstructuredList]
	set    func(autoAssign []string)
	// informer is that of the kind while there is one; looked: it is known whether there is.
	informer atomic.Pointer[cache.Controller]
	looked   atomic.Bool
}

func newOpenShift(kinds discovery.ServerResourcesInterfaceWithContext, ours *Clients, facts *Facts) *openShift {
	return &openShift{kinds: kinds, client: ours.Networks, set: facts.setAutoAssign}
}

// hasSynced tells whether what OpenShift says is known, or that there is no OpenShift.
func (o *openShift) hasSynced() bool {
	informer := o.informer.Load()
	return o.looked.Load() && (informer == nil || (*informer).HasSynced())
}

func (o *openShift) run(ctx context.Context) {
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
		there, err := o.present(ctx)
		if err != nil {
			klog.V(2).InfoS("Ask the API server whether this is OpenShift; it is asked again", "err", err)
			timer.Reset(openShiftRetry)
			continue
		}
		switch following := o.informer.Load() != nil; {
		case there && !following:
			stop = o.follow(ctx)
		case !there && following:
			stop()
			o.informer.Store(nil)
			o.set(nil)
		}
		o.looked.Store(true)
		timer.Reset(openShiftPause)
	}
}

// follow reads the kind until the returned function is called, which waits for the end.
func (o *openShift) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	informer := follow(o.client, &unstructured.Unstructured{}, whole[*unstructured.Unstructured], o.changed)
	o.informer.Store(&informer)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (o *openShift) changed(old, now *unstructured.Unstructured) {
	switch {
	case cmp.Or(now, old).GetName() != openShiftNetwork:
	case now == nil:
		o.set(nil)
	default:
		o.set(convert.AutoAssignCIDRs(now))
	}
}

// present asks the API server whether it has the kind.
func (o *openShift) present(ctx context.Context) (bool, error) {
	list, err := o.kinds.ServerResourcesForGroupVersionWithContext(ctx, openShiftVersion().String())
	if errors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == openShiftNetworks }), nil
}

// setAutoAssign says once, when it changes, who gives addresses.
func (f *Facts) setAutoAssign(cidrs []string) {
	f.mu.Lock()
	same := slices.Equal(f.autoAssign, cidrs)
	if !same {
		f.autoAssign, f.changes.others = cidrs, true
	}
	f.mu.Unlock()
	if same {
		return
	}
	if len(cidrs) > 0 {
		klog.InfoS("OpenShift gives addresses to Services itself: no new ones are given here", "autoAssignCIDRs", cidrs)
	} else {
		klog.InfoS("OpenShift gives no addresses to Services itself any more: they are given here again")
	}
	f.hooks.Wake()
}
