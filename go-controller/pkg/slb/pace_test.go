// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPassesAtOnceWhenIdleAndRarelyInABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		signal := func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		passes := 0
		done := make(chan struct{})
		go func() { defer close(done); paced(ctx, wake, func() { passes++ }) }()

		signal()
		synctest.Wait()
		if passes != 1 {
			t.Errorf("%d passes at once, want 1", passes)
		}
		<-time.After(time.Second)
		passes = 0
		for range 1000 { // a second of an event a millisecond
			signal()
			<-time.After(time.Millisecond)
		}
		synctest.Wait()
		if passes < 20 || passes > 25 {
			t.Errorf("%d passes in a second of events, want about 20", passes)
		}
		<-time.After(time.Second)
		passes = 0
		signal()
		synctest.Wait()
		if passes != 1 {
			t.Errorf("%d passes at once after quiet, want 1", passes)
		}
		cancel()
		<-done
	})
}
