// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
)

// objectPause is the minimum time between two status writes of one object.
const objectPause = time.Second

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

	mu   sync.Mutex
	want map[string]status.Merge[T]
	last map[string]time.Time
	mine map[string]written[T]
}

// written is the response of the API server to a write that the informer has not shown yet.
type written[T object] struct {
	over   string // resourceVersion that the write replaced
	object T
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
		mine:    map[string]written[T]{},
	}
}

// Set replaces all desired statuses.
func (w *ObjectWriter[T]) Set(want map[string]status.Merge[T]) {
	w.mu.Lock()
	w.want = want
	maps.DeleteFunc(w.last, func(name string, _ time.Time) bool { return want[name] == nil })
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
	merge, last := w.want[name], w.last[name]
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
	if pause := last.Add(objectPause).Sub(now); pause > 0 {
		return pause
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
	if err == nil {
		w.mine[name] = written[T]{over: have.GetResourceVersion(), object: got}
	}
	w.mu.Unlock()
	if err == nil {
		w.onWrite(have, got)
		return 0
	}
	if !errors.IsConflict(err) {
		klog.ErrorS(err, "Failed to write status", "kind", w.kind, "name", name)
	}
	return objectPause
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
