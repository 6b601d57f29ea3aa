// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	// eventPause is the time between two batches of Events, and eventBurst the maximum size of a batch. For the API
	// server an Event is as expensive as the write of an address, but no client waits for it.
	eventPause = 100 * time.Millisecond
	eventBurst = 25
	// eventBurstBusy is the maximum size of a batch while addresses are waiting to be written. It is not 0, because a
	// tenant who creates one Service after the other can make them wait all the time.
	eventBurstBusy = 1
	// maxEvents bounds the queue. The conditions contain the same information.
	maxEvents = 20_000
	// claimDelay is how long the Event waits that no gateway has claimed the address of a Service, or that there is none:
	// a gateway that has just been configured claims it within a second, and that of a failed one is claimed by the next.
	// On br-ex, no node can be a gateway until guards report the port of a new L2Domain, which takes about 3 s.
	claimDelay = 5 * time.Second
	// provideDelay is how long the Event waits that the provider of an external pool has not fulfilled the claim of a
	// Service: each Service waits for it at first, most for some seconds.
	provideDelay = 30 * time.Second
)

type event struct {
	about                 *corev1.ObjectReference
	kind, reason, message string
}

// eventQueue contains the Events that are not yet written. The zero value is empty.
type eventQueue struct {
	mu      sync.Mutex
	waiting fairQueue[event]
	// drops is set from the first Event that is dropped until half of the queue is empty.
	drops bool
	// later are Events that are dropped if what they report is over after a delay.
	later map[laterKey]*laterEvent
}

// laterKey are the object and the reason of an Event.
type laterKey struct {
	about  types.UID
	reason string
}

type laterEvent struct {
	event
	timer *time.Timer
}

// add adds an Event. If the queue is full, it drops the newest one of the namespace with the most Events.
func (q *eventQueue) add(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.append(e)
}

// addLater adds an Event after a delay, unless it is canceled before. It replaces an earlier one with the same reason
// about the object.
func (q *eventQueue) addLater(e event, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.later == nil {
		q.later = map[laterKey]*laterEvent{}
	}
	key := laterKey{e.about.UID, e.reason}
	if last := q.later[key]; last != nil {
		last.timer.Stop()
	}
	next := &laterEvent{event: e}
	next.timer = time.AfterFunc(delay, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.later[key] == next {
			delete(q.later, key)
			q.append(next.event)
		}
	})
	q.later[key] = next
}

// amendLater replaces the message of the Event that addLater has not added yet, if there is one.
func (q *eventQueue) amendLater(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := q.later[laterKey{e.about.UID, e.reason}]; last != nil {
		last.message = e.message
	}
}

// cancel drops the Event with a reason about an object that addLater has not added yet.
func (q *eventQueue) cancel(about types.UID, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := laterKey{about, reason}
	if last := q.later[key]; last != nil {
		last.timer.Stop()
		delete(q.later, key)
	}
}

// append adds an Event. q.mu must be held.
func (q *eventQueue) append(e event) {
	q.waiting.add(e.about.Namespace, e)
	if q.waiting.length <= maxEvents {
		return
	}
	namespace, last := q.waiting.drop()
	if !q.drops {
		klog.InfoS("Dropping events because the queue is full", "first", klog.KRef(namespace, last.about.Name), "reason",
			last.reason)
	}
	q.drops = true
}

// take removes up to n Events.
func (q *eventQueue) take(n int) []event {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := make([]event, min(n, q.waiting.length))
	for i := range taken {
		taken[i] = q.waiting.next()
	}
	q.drops = q.drops && q.waiting.length > maxEvents/2
	return taken
}

// Run writes Events to the sink until the context ends, but only few while busy reports that more urgent writes are
// pending.
func (e *Events) Run(ctx context.Context, sink record.EventSink, busy func() bool) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(e.correlator()))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(sink)
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "ovnkube-slb"})
	ticker := time.NewTicker(eventPause)
	defer ticker.Stop()
	var limit eventLimit
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n := eventBurst
		if busy() {
			n = eventBurstBusy
		}
		// The broadcaster has a queue in which namespaces don't take turns. If the API server is slow, Events wait here.
		n = max(0, n-int(e.unwritten.Load()))
		now := time.Now()
		batch := limit.takeAllowed(now, n)
		for _, t := range e.queue.take(n - len(batch)) {
			if limit.admit(now, t) {
				batch = append(batch, t)
			}
		}
		for _, t := range batch {
			e.unwritten.Add(1)
			recorder.Event(t.about, t.kind, t.reason, t.message)
		}
	}
}

// correlator counts the Events that the broadcaster begins to write: it asks for the key of each one first. Its limit
// of those about one object, which drops the others, is above ours.
func (e *Events) correlator() record.CorrelatorOptions {
	return record.CorrelatorOptions{BurstSize: limitBurst + 1, SpamKeyFunc: func(event *corev1.Event) string {
		e.unwritten.Add(-1)
		about := event.InvolvedObject
		return strings.Join([]string{about.Kind, about.Namespace, about.Name, string(about.UID), event.Type}, "/")
	}}
}
