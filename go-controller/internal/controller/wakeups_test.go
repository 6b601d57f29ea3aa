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
	took          time.Duration
	amendable     bool
	amends, whole atomic.Int64
}

// served runs a test while another goroutine serves the wakeups.
func served(t *testing.T, n *counter, test func(c *wakeups)) {
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
					n.whole.Add(1)
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
	served(t, n, func(c *wakeups) {
		c.wake()
		synctest.Wait()
		if n.amends.Load() != 1 || n.whole.Load() != 0 {
			t.Errorf("%d amendments and %d whole passes at once, want 1 and 0", n.amends.Load(), n.whole.Load())
		}
		<-time.After(confirmPause)
		synctest.Wait()
		if n.whole.Load() != 1 {
			t.Errorf("%d whole passes %s later, want 1", n.whole.Load(), confirmPause)
		}
		<-time.After(time.Minute)
		if n.amends.Load() != 1 || n.whole.Load() != 1 {
			t.Errorf("%d amendments and %d whole passes after a quiet minute, want 1 and 1", n.amends.Load(), n.whole.Load())
		}
		n.whole.Store(0)
		every(time.Millisecond, 21_000, c.wake)
		if n.whole.Load() != 4 {
			t.Errorf("%d whole passes in 21 s of amendments, want one in %s", n.whole.Load(), confirmLatest)
		}
		synctest.Wait()
		n.took = 8 * time.Second / confirmShare
		n.whole.Store(0)
		every(time.Millisecond, 65_000, c.wake)
		if n.whole.Load() < 7 || n.whole.Load() > 9 {
			t.Errorf("%d whole passes of %s in 65 s of amendments, want one in 8 s", n.whole.Load(), n.took)
		}
		synctest.Wait()
		n.took = time.Minute / confirmShare
		n.whole.Store(0)
		every(time.Millisecond, 65_000, c.wake)
		if n.whole.Load() < 5 || n.whole.Load() > 7 {
			t.Errorf("%d whole passes of %s in 65 s of amendments, want one in %s", n.whole.Load(), n.took, confirmLongest)
		}
	})
}

func TestSequentialCallsReturnImmediately(t *testing.T) {
	n := &counter{took: time.Millisecond}
	served(t, n, func(c *wakeups) {
		for i := range 100 {
			c.wake()
			<-time.After(2 * time.Millisecond)
			synctest.Wait()
			if n.whole.Load() != int64(i+1) {
				t.Fatalf("%d passes 2 ms after call %d, want one for each", n.whole.Load(), i+1)
			}
			<-time.After(8 * time.Millisecond)
		}
	})
}

func TestPassesUseAFifthOfTheTimeInBursts(t *testing.T) {
	n := &counter{took: 100 * time.Millisecond}
	served(t, n, func(c *wakeups) {
		every(time.Millisecond, 5000, c.wake)
		synctest.Wait()
		if n.whole.Load() < 10 || n.whole.Load() > 12 {
			t.Errorf("%d passes of 100 ms in 5 s, want about 11", n.whole.Load())
		}
		<-time.After(time.Second)
		synctest.Wait()
		n.whole.Store(0)
		c.wake()
		synctest.Wait()
		if n.whole.Load() != 1 {
			t.Errorf("%d passes at once after quiet, want 1", n.whole.Load())
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
