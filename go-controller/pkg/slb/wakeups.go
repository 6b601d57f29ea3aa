// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"time"
)

const (
	// confirmPause is how long after the last amendment everything is decided anew: what is
	// told of pools, domains and in metrics follows then. A change in that moment waits for
	// the decision, so one that comes soon after another must not meet it.
	confirmPause = 500 * time.Millisecond
	// confirmLatest is when this happens though amendments never pause.
	confirmLatest = 5 * time.Second
	// confirmShare bounds the part of the time that goes into this: of changes that come at any time,
	// no more than one in so many meets it. A pass that took long once, on a machine that was busy,
	// puts off the next by confirmLongest at the most.
	confirmShare   = 100
	confirmLongest = 10 * time.Second
	// longestStreak bounds the pause in a burst of calls that no amendment answers, in
	// times that a pass takes.
	longestStreak = 4
	// minPause lets the calls of a moment have one pass.
	minPause = 5 * time.Millisecond
)

// wakeups are what passes are made for.
type wakeups struct{ signal chan struct{} }

func newWakeups() *wakeups { return &wakeups{signal: make(chan struct{}, 1)} }

func (c *wakeups) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// passes answer calls.
type passes struct {
	// amend follows what changed in what was decided last, and whole decides everything.
	// Amend is false if that does not do.
	amend func() bool
	whole func()
	// alive is called every now and then, as long as answers come.
	alive func()
}

// serve answers all calls that came before a pass started by that one: at once by an
// amendment, or else by a whole pass, which comes at once unless the last one is hardly
// over. A whole pass also follows amendments, later.
func (c *wakeups) serve(ctx context.Context, p passes) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	idle := time.NewTicker(beatEvery)
	defer idle.Stop()
	until := func(t time.Time) bool {
		wait.Reset(time.Until(t))
		select {
		case <-ctx.Done():
			return false
		case <-wait.C:
			return true
		}
	}
	confirm := time.NewTimer(0)
	confirm.Stop()
	defer confirm.Stop()

	var ended, free time.Time // the last whole pass, the next one
	var first time.Time       // the first amendment since
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
		case <-c.signal:
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
				streak = min(streak+1, longestStreak)
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
		p.whole()
		ended = time.Now()
		took = ended.Sub(start)
		free = ended.Add(max(minPause, time.Duration(streak)*took))
	}
}
