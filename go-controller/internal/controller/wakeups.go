// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
)

const (
	// confirmPause is the time from the last amendment to the next full pass, which updates the statuses of pools and
	// domains and the metrics. A change during the full pass waits for its end, so a change soon after another one must
	// not coincide with it.
	confirmPause = 500 * time.Millisecond
	// confirmLatest is the maximum delay of the full pass while amendments continue without a pause.
	confirmLatest = 5 * time.Second
	// confirmShare limits the share of time spent in these full passes: at most one in confirmShare changes that arrive at
	// random times coincides with one. After a pass that took unusually long, for example on a busy machine,
	// confirmLongest limits the delay of the next pass.
	confirmShare   = 100
	confirmLongest = 10 * time.Second
	// maxBackoffFactor limits the pause during a burst of wakeups that no amendment can handle, in multiples of the
	// duration of a pass.
	maxBackoffFactor = 4
	// minPause coalesces wakeups that arrive at almost the same time into one pass.
	minPause = 5 * time.Millisecond
)

// wakeups coalesces the requests for a pass.
type wakeups struct{ signal chan struct{} }

func newWakeups() *wakeups { return &wakeups{signal: make(chan struct{}, 1)} }

func (w *wakeups) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// passes are the functions that handle wakeups.
type passes struct {
	// amend applies changes to the last decision. It returns false if a full pass is needed, and is called again until
	// that pass starts. full runs a full pass.
	amend func() bool
	full  func()
	// alive is called periodically as long as wakeups are served.
	alive func()
}

// run handles wakeups until ctx is done. One pass handles all wakeups that arrived before it started. An amendment
// runs immediately, also while a full pass is due. If it does not suffice, a full pass runs, immediately unless the
// last one has just ended. A full pass also follows amendments after a delay.
func (w *wakeups) run(ctx context.Context, p passes) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	idle := time.NewTicker(loop.BeatInterval)
	defer idle.Stop()
	// until waits for the earliest start of a full pass that is due, and amends meanwhile what needs no full pass: a
	// tenant whose changes need one again and again does not delay the endpoints of others.
	until := func(t time.Time) bool {
		wait.Reset(time.Until(t))
		for {
			p.alive()
			select {
			case <-ctx.Done():
				return false
			case <-wait.C:
				return true
			case <-w.signal:
				p.amend()
			}
		}
	}
	confirm := time.NewTimer(0)
	confirm.Stop()
	defer confirm.Stop()

	var ended, free time.Time // end of the last full pass, earliest start of the next one
	var first time.Time       // first amendment since the last full pass
	var took time.Duration
	streak := 1
	for {
		p.alive()
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			continue
		case <-confirm.C:
		case <-w.signal:
			if p.amend() {
				now := time.Now()
				if first.IsZero() {
					first = now
				}
				quiet := min(confirmPause, first.Add(confirmLatest).Sub(now))
				confirm.Reset(max(quiet, ended.Add(min(confirmShare*took, confirmLongest)).Sub(now)))
				continue
			}
			if time.Now().Before(free) {
				streak = min(streak+1, maxBackoffFactor)
			} else {
				streak = 1
			}
			if !until(free) {
				return
			}
		}
		confirm.Stop()
		first = time.Time{}
		start := time.Now()
		p.full()
		ended = time.Now()
		took = ended.Sub(start)
		free = ended.Add(max(minPause, time.Duration(streak)*took))
	}
}

// wakeTimer calls a function at the time that was set last. The zero value never calls one.
type wakeTimer struct{ timer *time.Timer }

// set replaces the time and the function. The zero time disables the timer.
func (t *wakeTimer) set(at time.Time, call func()) {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if !at.IsZero() {
		t.timer = time.AfterFunc(time.Until(at), call)
	}
}
