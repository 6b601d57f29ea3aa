// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"sync/atomic"
	"time"
)

// The pause between the starts of two passes: short as long as somebody waits for each,
// longer in a burst.
const (
	minPause = 5 * time.Millisecond
	maxPause = 50 * time.Millisecond
	// fewCalls is how many calls between two passes are no burst: a Service that is
	// replaced by another makes two.
	fewCalls = 4
)

// calls are what passes are made for. Those of users are answered at once, and what the
// dataplane tells is put into the status soon: each Service that a user waits for is
// followed by one such message.
type calls struct {
	now, soon chan struct{}
	count     atomic.Int32 // of those that came since the last pass started and want an answer now
}

func newCalls() *calls {
	return &calls{now: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
}

func (c *calls) callNow() {
	c.count.Add(1)
	call(c.now)
}

func (c *calls) callSoon() { call(c.soon) }

func call(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// serve makes one pass for all calls that came before it started: at once when few call,
// in a burst at most every 50 ms, and never for more than half of the time.
func (c *calls) serve(ctx context.Context, pass func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	wait := func(early <-chan struct{}) bool {
		select {
		case <-ctx.Done():
			return false
		case <-early:
		case <-timer.C:
		}
		return true
	}
	pause := minPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.now:
		case <-c.soon:
			timer.Reset(maxPause)
			if !wait(c.now) {
				return
			}
		}
		if c.count.Swap(0) > fewCalls {
			pause = min(2*pause, maxPause)
		} else {
			pause = minPause
		}
		select {
		case <-c.soon:
		default:
		}
		start := time.Now()
		pass()
		took := time.Since(start)
		timer.Reset(max(pause-took, took))
		if !wait(nil) {
			return
		}
	}
}
