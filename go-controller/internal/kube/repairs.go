// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// repairs limits how often the same status of one Service is written again because another client has changed it: a
// second controller, or one that undoes each write. A status that differs from the last one is not delayed.
type repairs struct {
	// last is the status written last.
	last    *status.Service
	backoff dataplane.DriftBackoff
	// pause is the pause before the next repair, and free the time when it ends.
	pause time.Duration
	free  time.Time
}

// isRepair reports whether a status was written before. What another client has written in its place does not count:
// the decision follows that.
func (r *repairs) isRepair(s *status.Service) bool {
	if r.last == nil {
		return false
	}
	before := *r.last
	before.PreviousAddrs, before.PreviousHosts = s.PreviousAddrs, s.PreviousHosts
	return before.Equal(s)
}

// repairPause returns how long a status must wait because other clients change what was written before.
func (w *ServiceWriter) repairPause(key world.Key, s *status.Service, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.repairs[key]; r != nil && r.isRepair(s) {
		return max(0, r.free.Sub(now))
	}
	return 0
}

// recordWrite records that a status has been written.
func (w *ServiceWriter) recordWrite(key world.Key, s *status.Service, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.want[key] == nil {
		return
	}
	r := w.repairs[key]
	if r == nil {
		r = &repairs{}
		w.repairs[key] = r
	}
	if r.isRepair(s) {
		pause := r.backoff.Reported(now)
		if pause > 0 && r.pause == 0 {
			klog.InfoS("Another client changes the status of a Service again and again, or its ports change; repairs wait",
				"service", key.String())
		}
		r.pause, r.free = pause, now.Add(pause)
	}
	r.last = s
}
