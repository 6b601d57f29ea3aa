// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Unserved tells those who write objects of kinds that this release doesn't serve that
// they have no effect.
type Unserved struct {
	watches []cache.Controller
	runs    []func(context.Context)
}

// NewUnserved looks after the kinds for BGP.
func NewUnserved(ours *Clients, wrote Wrote) *Unserved {
	u := &Unserved{}
	unserve(u, "BGPPeer", ours.Peers, &v1alpha1.BGPPeer{}, (*v1alpha1.BGPPeer).DeepCopy,
		func(o *v1alpha1.BGPPeer) *[]metav1.Condition { return &o.Status.Conditions }, wrote)
	unserve(u, "BGPAdvertisement", ours.Advertisements, &v1alpha1.BGPAdvertisement{}, (*v1alpha1.BGPAdvertisement).DeepCopy,
		func(o *v1alpha1.BGPAdvertisement) *[]metav1.Condition { return &o.Status.Conditions }, wrote)
	unserve(u, "BFDProfile", ours.Profiles, &v1alpha1.BFDProfile{}, (*v1alpha1.BFDProfile).DeepCopy,
		func(o *v1alpha1.BFDProfile) *[]metav1.Condition { return &o.Status.Conditions }, wrote)
	unserve(u, "Community", ours.Communities, &v1alpha1.Community{}, (*v1alpha1.Community).DeepCopy,
		func(o *v1alpha1.Community) *[]metav1.Condition { return &o.Status.Conditions }, wrote)
	return u
}

// Run writes conditions until the context ends.
func (u *Unserved) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range u.runs {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}

// client reads one kind and writes its status.
type client[T object, L runtime.Object] interface {
	lister[L]
	StatusUpdater[T]
}

func unserve[T object, L runtime.Object](u *Unserved, kind string, api client[T, L], empty T,
	clone func(T) T, conditions func(T) *[]metav1.Condition, wrote Wrote,
) {
	verdict := Verdicts{v1alpha1.ConditionAccepted: {metav1.ConditionFalse, v1alpha1.ReasonFeatureUnavailable,
		"BGP is not served by this release: the " + kind + " is kept and has no effect"}}
	var mu sync.Mutex
	objects := map[string]T{}
	writer := NewObjectWriter(kind, api, func(name string) (T, bool) {
		mu.Lock()
		defer mu.Unlock()
		o, ok := objects[name]
		return o, ok
	}, wrote, nil)
	merge := func(have T, now time.Time) (T, bool) {
		next := clone(have)
		return next, verdict.set(conditions(next), have.GetGeneration(), now)
	}
	u.runs = append(u.runs, writer.Run)
	u.watches = append(u.watches, follow(api, empty, whole[T], func(old, now T) {
		var none T
		mu.Lock()
		if any(now) == any(none) {
			delete(objects, old.GetName())
		} else {
			objects[now.GetName()] = now
		}
		want := make(map[string]Merge[T], len(objects))
		for name := range objects {
			want[name] = merge
		}
		mu.Unlock()
		writer.Set(want)
	}))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
