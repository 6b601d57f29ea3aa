// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// objectPause is the minimum time between two status writes of one object.
	objectPause = time.Second
	// maxRefusedPause is the maximum time between two attempts while the API server refuses the status of an object: it is
	// refused until the object's other fields, our state or the CRD change. The first attempts follow with objectPause,
	// doubled each time.
	maxRefusedPause = time.Minute
	// maxForbiddenPause is that while it forbids the write, which it also does while it loads its roles: zones wait for
	// some statuses.
	maxForbiddenPause = 5 * time.Second
	// maxFailurePause is that while writes fail for other reasons, as a webhook that is down. What is urgent is tried
	// again after objectPause.
	maxFailurePause = 10 * time.Second
	// statusBurst writes of a paced object can follow each other with that pause, further ones with statusPause: counts of
	// a pool change whenever a tenant creates or deletes a Service, and a router changes what a node reports.
	statusBurst = 10
	statusPause = 10 * time.Second
)

// StatusUpdater writes the status of one kind.
type StatusUpdater[T object] interface {
	UpdateStatus(ctx context.Context, o T, options metav1.UpdateOptions) (T, error)
}

// ObjectWriter writes the desired statuses of the objects of one kind, at most one write per second per object.
type ObjectWriter[T object] struct {
	kind    string
	client  StatusUpdater[T]
	read    func(name string) (T, bool)
	wrote   Wrote
	onWrite WriteObserver[T]
	queue   workqueue.TypedDelayingInterface[string]
	// paced means that there is a further limit for each object, except for writes for which isUrgent returns true.
	paced    bool
	isUrgent func(before, after T) bool
	failures failureLog

	mu   sync.Mutex
	want map[string]status.Merge[T]
	last map[string]time.Time
	// refused are the last writes of objects whose status was refused, or could not be written.
	refused map[string]refusal[T]
	limits  map[string]*rate.Limiter
	mine    map[string]written[T]
}

// written is the response of the API server to a write that the informer has not shown yet.
type written[T object] struct {
	over   string // resourceVersion that the write replaced
	object T
}

// refusal is what the API server refused or did not store, and the pause after that. A status that differs in what is
// urgent does not wait: it may not be refused.
type refusal[T object] struct {
	object T
	pause  time.Duration
}

// WriteObserver is called with the object before and after each successful write.
type WriteObserver[T object] func(before, after T)

// NewObjectWriter returns a writer for one kind. read returns the newest object with a name. onWrite may be nil.
func NewObjectWriter[T object](
	kind string, client StatusUpdater[T], read func(name string) (T, bool), wrote Wrote, onWrite WriteObserver[T],
) *ObjectWriter[T] {
	if onWrite == nil {
		onWrite = func(T, T) {}
	}
	return &ObjectWriter[T]{
		kind:    kind,
		client:  client,
		read:    read,
		wrote:   wrote,
		onWrite: onWrite,
		queue:   workqueue.NewTypedDelayingQueue[string](),
		want:    map[string]status.Merge[T]{},
		last:    map[string]time.Time{},
		refused: map[string]refusal[T]{},
		limits:  map[string]*rate.Limiter{},
		mine:    map[string]written[T]{},
	}
}

// NewPoolWriter returns a writer for pools.
func NewPoolWriter(client StatusUpdater[*v1alpha1.IPAddressPool],
	read func(name string) (*v1alpha1.IPAddressPool, bool), wrote Wrote,
	onWrite WriteObserver[*v1alpha1.IPAddressPool]) *ObjectWriter[*v1alpha1.IPAddressPool] {
	w := NewObjectWriter("IPAddressPool", client, read, wrote, onWrite)
	w.paced, w.isUrgent = true, func(_, _ *v1alpha1.IPAddressPool) bool { return false }
	return w
}

// NewDomainWriter returns a writer for L2Domains. All nodes watch them: what zones apply is written at once, and counts
// of what tenants create, texts of what nodes report and reasons of nodes that are no gateways are paced.
func NewDomainWriter(client StatusUpdater[*v1alpha1.L2Domain],
	read func(name string) (*v1alpha1.L2Domain, bool), wrote Wrote,
	onWrite WriteObserver[*v1alpha1.L2Domain]) *ObjectWriter[*v1alpha1.L2Domain] {
	w := NewObjectWriter("L2Domain", client, read, wrote, onWrite)
	w.paced, w.isUrgent = true, func(before, after *v1alpha1.L2Domain) bool {
		return !equality.Semantic.DeepEqual(withoutCounts(&before.Status), withoutCounts(&after.Status))
	}
	return w
}

// withoutCounts returns a status without the numbers of addresses and nodes, without texts, and without excluded nodes
// that are no gateways: such a node can be excluded and return as often as it likes.
func withoutCounts(s *v1alpha1.L2DomainStatus) *v1alpha1.L2DomainStatus {
	out := s.DeepCopy()
	out.ModeMessage, out.EligibleNodes = "", 0
	gateways := map[string]bool{}
	for i := range out.Shards {
		shard := &out.Shards[i]
		shard.Addresses, gateways[shard.Active] = 0, true
		for _, name := range shard.Gateways {
			gateways[name] = true
		}
	}
	out.ExcludedNodes = slices.DeleteFunc(out.ExcludedNodes, func(n v1alpha1.ExcludedNode) bool {
		return !gateways[n.Name]
	})
	for i := range out.ExcludedNodes {
		out.ExcludedNodes[i].Message = ""
	}
	for i := range out.Conditions {
		out.Conditions[i].Message, out.Conditions[i].LastTransitionTime = "", metav1.Time{}
	}
	return out
}

// NewNodeStatusWriter returns a writer for what a node reports about its sessions. isUrgent reports whether a write
// must not wait, given the object before and after it.
func NewNodeStatusWriter(client StatusUpdater[*v1alpha1.BGPNodeStatus],
	read func(name string) (*v1alpha1.BGPNodeStatus, bool), wrote Wrote, onWrite WriteObserver[*v1alpha1.BGPNodeStatus],
	isUrgent func(before, after *v1alpha1.BGPNodeStatus) bool) *ObjectWriter[*v1alpha1.BGPNodeStatus] {
	w := NewObjectWriter("BGPNodeStatus", client, read, wrote, onWrite)
	w.paced, w.isUrgent = true, isUrgent
	return w
}

// Set replaces all desired statuses.
func (w *ObjectWriter[T]) Set(want map[string]status.Merge[T]) {
	w.mu.Lock()
	w.want = want
	maps.DeleteFunc(w.last, func(name string, _ time.Time) bool { return want[name] == nil })
	maps.DeleteFunc(w.refused, func(name string, _ refusal[T]) bool { return want[name] == nil })
	maps.DeleteFunc(w.limits, func(name string, _ *rate.Limiter) bool { return want[name] == nil })
	maps.DeleteFunc(w.mine, func(name string, _ written[T]) bool { return want[name] == nil })
	w.mu.Unlock()
	for name := range want {
		w.queue.Add(name)
	}
}

// Run writes until the context ends.
func (w *ObjectWriter[T]) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer w.queue.ShutDown() // It has not been called if the end of ctx was noticed first.
	defer stop()
	for {
		name, down := w.queue.Get()
		if down || ctx.Err() != nil { // the next leader writes what is queued
			return
		}
		if pause := w.write(ctx, name); pause > 0 {
			w.queue.AddAfter(name, pause)
		}
		w.queue.Done(name)
	}
}

// write returns the time to wait before the next attempt, 0 for none.
func (w *ObjectWriter[T]) write(ctx context.Context, name string) time.Duration {
	w.mu.Lock()
	merge, last, refused := w.want[name], w.last[name], w.refused[name]
	have, ok := w.newest(name)
	w.mu.Unlock()
	if merge == nil || !ok {
		return 0
	}
	now := time.Now()
	next, changed := merge(have, now)
	if !changed {
		return 0
	}
	minimum := objectPause
	if refused.pause > 0 && (w.isUrgent == nil || !w.isUrgent(refused.object, next)) {
		minimum = refused.pause
	}
	if pause := last.Add(minimum).Sub(now); pause > 0 {
		return pause
	}
	if w.paced && !w.isUrgent(have, next) {
		if pause := w.reserve(name, now); pause > 0 {
			return pause
		}
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout) // a write that hangs must not block those of other objects
	defer cancel()
	got, err := w.client.UpdateStatus(sending, next, metav1.UpdateOptions{})
	switch {
	case ctx.Err() != nil:
		return 0
	case errors.IsNotFound(err):
		return objectPause // if the object was deleted, the informer reports it by then
	}
	w.wrote(w.kind, err)
	w.mu.Lock()
	w.last[name] = now
	delete(w.mine, name)
	again := objectPause
	longest := maxPause(err)
	if longest == 0 && err != nil && !errors.IsConflict(err) && (w.isUrgent == nil || !w.isUrgent(have, next)) {
		longest = maxFailurePause
	}
	if longest > 0 {
		again = min(max(objectPause, 2*refused.pause), longest)
		w.refused[name] = refusal[T]{next, again}
	} else {
		delete(w.refused, name)
	}
	if err == nil {
		w.mine[name] = written[T]{over: have.GetResourceVersion(), object: got}
	}
	w.mu.Unlock()
	if err == nil {
		w.onWrite(have, got)
		return 0
	}
	if errors.IsConflict(err) {
		return again
	}
	if skipped, allowed := w.failures.allow(err, now); allowed {
		klog.ErrorS(err, "Failed to write status", "kind", w.kind, "name", name, "failuresNotLogged", skipped)
	}
	return again
}

// maxPause returns the maximum time between two attempts if the API server refused a write because of what is written
// or who writes it, 0 for other errors, which end by themselves.
func maxPause(err error) time.Duration {
	switch {
	case errors.IsForbidden(err):
		return maxForbiddenPause
	case errors.IsInvalid(err), errors.IsBadRequest(err), IsTooLarge(err):
		return maxRefusedPause
	default:
		return 0
	}
}

// reserve takes a write from the limit of an object, or returns the time until there is one to take.
func (w *ObjectWriter[T]) reserve(name string, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limits[name] == nil {
		w.limits[name] = rate.NewLimiter(rate.Every(statusPause), statusBurst)
	}
	r := w.limits[name].ReserveN(now, 1)
	pause := r.DelayFrom(now)
	if pause > 0 {
		r.CancelAt(now)
	}
	return pause
}

// newest returns our own last write for as long as the informer shows the object that it replaced. Compared with the
// informer's object, a status that returns to its previous value would appear to be written already.
func (w *ObjectWriter[T]) newest(name string) (T, bool) {
	have, ok := w.read(name)
	if mine, wrote := w.mine[name]; ok && wrote && have.GetResourceVersion() == mine.over &&
		have.GetUID() == mine.object.GetUID() {
		return mine.object, true
	}
	delete(w.mine, name)
	return have, ok
}
