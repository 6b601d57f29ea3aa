// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
)

type event struct {
	about                 *corev1.ObjectReference
	kind, reason, message string
}

// eventQueue contains the Events that are not yet written. The zero value is empty.
type eventQueue struct {
	mu      sync.Mutex
	waiting []event
}

func (q *eventQueue) add(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
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
