// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	// eventPause is the time between two batches of Events, and eventBurst the maximum size of a batch. For the API
	// server an Event is as expensive as the write of an address, but no client waits for it.
	eventPause = 100 * time.Millisecond
	eventBurst = 25
	// maxEvents bounds the queue. The conditions contain the same information.
	maxEvents = 20_000
	// claimDelay is how long the Event that no gateway has claimed the address of a Service waits: a gateway that has just
	// been configured claims it within a second, and that of a failed one is claimed by the next.
	claimDelay = 5 * time.Second
)

type event struct {
	about                 *corev1.ObjectReference
	kind, reason, message string
}

// eventQueue contains the Events that are not yet written. The zero value is empty.
type eventQueue struct {
	mu      sync.Mutex
	waiting []event
	// later are Events that are dropped if what they report is over after claimDelay, by the UID of their object.
	later map[types.UID]*time.Timer
}

func (q *eventQueue) add(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.append(e)
}

// addLater adds an Event after claimDelay, unless it is cancelled before. It replaces an earlier one about the object.
func (q *eventQueue) addLater(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.later == nil {
		q.later = map[types.UID]*time.Timer{}
	}
	if t := q.later[e.about.UID]; t != nil {
		t.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(claimDelay, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.later[e.about.UID] == t {
			delete(q.later, e.about.UID)
			q.append(e)
		}
	})
	q.later[e.about.UID] = t
}

// cancel drops the Event about an object that addLater has not added yet.
func (q *eventQueue) cancel(about types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.later[about]; t != nil {
		t.Stop()
		delete(q.later, about)
	}
}

// append adds an Event; q.mu must be held.
func (q *eventQueue) append(e event) {
	if len(q.waiting) >= maxEvents {
		klog.InfoS("Dropped an event because the queue is full", "about", klog.KRef(e.about.Namespace, e.about.Name),
			"reason", e.reason)
		return
	}
	q.waiting = append(q.waiting, e)
}

// take removes up to n of the oldest Events.
func (q *eventQueue) take(n int) []event {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.waiting))
	taken := q.waiting[:n:n]
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return taken
}

// Run passes Events to the recorder until the context ends, but not while busy reports that more urgent writes are
// pending.
func (e *Events) Run(ctx context.Context, recorder record.EventRecorder, busy func() bool) {
	ticker := time.NewTicker(eventPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if busy() {
			continue
		}
		for _, t := range e.queue.take(eventBurst) {
			recorder.Event(t.about, t.kind, t.reason, t.message)
		}
	}
}
