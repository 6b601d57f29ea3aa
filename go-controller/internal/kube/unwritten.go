// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// openStatus is a status that may differ from the desired one: the time since which it does, or the last write. written
// is what that write contains, nil if another one has been sent since then.
type openStatus struct {
	since   time.Time
	written *status.Service
}

// unwrittenTime is how long a status may differ from the desired one before Unwritten returns it.
const unwrittenTime = time.Minute

// recordWritten records that the API server has accepted a status, which the informer may not show for a while.
func (w *ServiceWriter) recordWritten(key world.Key, s *status.Service, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isOpen(key) {
		w.open[key] = openStatus{since: now, written: s}
	}
}

// reopen forgets what was written last, because another write follows. w.mu must be held.
func (w *ServiceWriter) reopen(key world.Key) {
	if w.isOpen(key) {
		w.open[key] = openStatus{since: w.open[key].since}
	}
}

// Unwritten returns the desired statuses that have waited to be written for a minute: the API server refuses them or is
// slow, or other clients keep changing them.
func (w *ServiceWriter) Unwritten() []*status.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*status.Service
	now := time.Now()
	for key, o := range w.open {
		s := w.want[key]
		if s == nil || s.Release || now.Sub(o.since) < unwrittenTime || o.written != nil && o.written.Equal(s) {
			continue
		}
		list = append(list, s)
	}
	return list
}

// isOpen reports whether the status of a Service may differ from the desired one. w.mu must be held.
func (w *ServiceWriter) isOpen(key world.Key) bool {
	_, open := w.open[key]
	return open
}

// failureLogPause is the time between two log lines about writes that failed for the same cause.
const failureLogPause = time.Minute

// failureLog limits the log lines about failed writes: what makes the API server refuse the status of one Service often
// makes it refuse those of all. The zero value has logged nothing.
type failureLog struct {
	mu sync.Mutex
	// last is when a cause was last logged, and skipped the number of failures since then. The reasons of the API are few.
	last    map[metav1.StatusReason]time.Time
	skipped map[metav1.StatusReason]int
}

// allow reports whether a failure is to be logged, and how many with the same cause were not logged before it.
func (l *failureLog) allow(err error, now time.Time) (skipped int, allowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last, l.skipped = map[metav1.StatusReason]time.Time{}, map[metav1.StatusReason]int{}
	}
	cause := errors.ReasonForError(err)
	if last, logged := l.last[cause]; logged && now.Sub(last) < failureLogPause {
		l.skipped[cause]++
		return 0, false
	}
	skipped = l.skipped[cause]
	l.last[cause], l.skipped[cause] = now, 0
	return skipped, true
}
