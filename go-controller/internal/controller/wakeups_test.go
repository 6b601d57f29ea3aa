// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter counts passes. Full passes take time, amendments take none.
type counter struct {
	took         time.Duration
	amendable    bool
	amends, full atomic.Int64
}

// whileServed runs a test while another goroutine serves the wakeups.
func whileServed(t *testing.T, n *counter, test func(c *wakeups)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newWakeups()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(ctx, passes{
				alive: func() {},
				amend: func() bool {
					if n.amendable {
						n.amends.Add(1)
					}
					return n.amendable
				},
				full: func() {
					n.full.Add(1)
					<-time.After(n.took)
				},
			})
		}()
		test(c)
		cancel()
		<-done
	})
}

func every(d time.Duration, times int, do func()) {
	for range times {
		do()
		<-time.After(d)
	}
}

func TestAmendmentsApplyBeforeNextDecision(t *testing.T) {
	n := &counter{amendable: true, took: 10 * time.Millisecond}
	whileServed(t, n, func(c *wakeups) {
		c.wake()
		synctest.Wait()
		if n.amends.Load() != 1 || n.full.Load() != 0 {
			t.Errorf("%d amendments and %d full passes at once, want 1 and 0", n.amends.Load(), n.full.Load())
		}
		<-time.After(confirmPause)
		synctest.Wait()
		if n.full.Load() != 1 {
			t.Errorf("%d full passes %s later, want 1", n.full.Load(), confirmPause)
		}
		<-time.After(time.Minute)
		if n.amends.Load() != 1 || n.full.Load() != 1 {
			t.Errorf("%d amendments and %d full passes after a quiet minute, want 1 and 1", n.amends.Load(), n.full.Load())
		}
		n.full.Store(0)
		every(time.Millisecond, 21_000, c.wake)
		if n.full.Load() != 4 {
			t.Errorf("%d full passes in 21 s of amendments, want one in %s", n.full.Load(), confirmLatest)
		}
		synctest.Wait()
		n.took = 8 * time.Second / confirmShare
		n.full.Store(0)
		every(time.Millisecond, 65_000, c.wake)
		if n.full.Load() < 7 || n.full.Load() > 9 {
			t.Errorf("%d full passes of %s in 65 s of amendments, want one in 8 s", n.full.Load(), n.took)
		}
		synctest.Wait()
		n.took = time.Minute / confirmShare
		n.full.Store(0)
		every(time.Millisecond, 65_000, c.wake)
		if n.full.Load() < 5 || n.full.Load() > 7 {
			t.Errorf("%d full passes of %s in 65 s of amendments, want one in %s", n.full.Load(), n.took, confirmLongest)
		}
	})
}

func TestSequentialCallsReturnImmediately(t *testing.T) {
	n := &counter{took: time.Millisecond}
	whileServed(t, n, func(c *wakeups) {
		for i := range 100 {
			c.wake()
			<-time.After(2 * time.Millisecond)
			synctest.Wait()
			if n.full.Load() != int64(i+1) {
				t.Fatalf("%d passes 2 ms after call %d, want one for each", n.full.Load(), i+1)
			}
			<-time.After(8 * time.Millisecond)
		}
	})
}

func TestPassesUseAFifthOfTheTimeInBursts(t *testing.T) {
	n := &counter{took: 100 * time.Millisecond}
	whileServed(t, n, func(c *wakeups) {
		every(time.Millisecond, 5000, c.wake)
		synctest.Wait()
		if n.full.Load() < 10 || n.full.Load() > 12 {
			t.Errorf("%d passes of 100 ms in 5 s, want about 11", n.full.Load())
		}
		<-time.After(time.Second)
		synctest.Wait()
		n.full.Store(0)
		c.wake()
		synctest.Wait()
		if n.full.Load() != 1 {
			t.Errorf("%d passes at once after quiet, want 1", n.full.Load())
		}
	})
}

// Changes of one tenant that need a full pass do not delay the amendments of another one, and still get the pass.
func TestAmendmentsDoNotWaitForDuePass(t *testing.T) {
	n := &counter{took: time.Second}
	whileServed(t, n, func(c *wakeups) {
		c.wake()
		<-time.After(n.took + minPause/2) // in the pause after the first full pass
		c.wake()
		synctest.Wait()
		n.amendable = true
		c.wake()
		synctest.Wait()
		if n.amends.Load() != 1 || n.full.Load() != 1 {
			t.Errorf("%d amendments and %d full passes while one is due, want 1 and 1", n.amends.Load(), n.full.Load())
		}
		<-time.After(n.took)
		synctest.Wait()
		if n.full.Load() != 2 {
			t.Errorf("%d full passes, want that which was due: 2", n.full.Load())
		}
	})
}

func TestTimerFiresOnceAtLatestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a wakeTimer
		var calls []time.Duration
		start := time.Now()
		call := func() { calls = append(calls, time.Since(start)) }
		a.set(start.Add(time.Second), call)
		a.set(start.Add(3*time.Second), call)
		<-time.After(5 * time.Second)
		a.set(start.Add(6*time.Second), call)
		a.set(time.Time{}, call)
		<-time.After(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(calls, []time.Duration{3 * time.Second}) {
			t.Errorf("called after %v, want once after 3 s", calls)
		}
	})
}
