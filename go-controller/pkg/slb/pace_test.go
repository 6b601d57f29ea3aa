// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// served runs a test beside somebody who answers calls and counts the passes.
func served(t *testing.T, took time.Duration, test func(c *calls, passes *int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		ctx, cancel := context.WithCancel(t.Context())
		passes := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.serve(ctx, func() {
				passes++
				<-time.After(took)
			})
		}()
		test(c, &passes)
		cancel()
		<-done
	})
}

func TestPassesAtOnceWhenIdleAndRarelyInABurst(t *testing.T) {
	served(t, 0, func(c *calls, passes *int) {
		c.callNow()
		synctest.Wait()
		if *passes != 1 {
			t.Errorf("%d passes at once, want 1", *passes)
		}
		<-time.After(time.Second)
		*passes = 0
		for range 1000 { // a second of an event a millisecond
			c.callNow()
			<-time.After(time.Millisecond)
		}
		synctest.Wait()
		if *passes < 20 || *passes > 25 {
			t.Errorf("%d passes in a second of events, want about 20", *passes)
		}
		<-time.After(time.Second)
		*passes = 0
		c.callNow()
		synctest.Wait()
		if *passes != 1 {
			t.Errorf("%d passes at once after quiet, want 1", *passes)
		}
	})
}

func TestWhoCallsOneAfterTheOtherIsAnsweredAtOnce(t *testing.T) {
	served(t, time.Millisecond, func(c *calls, passes *int) {
		for i := range 100 {
			c.callNow()
			<-time.After(2 * time.Millisecond)
			if *passes != i+1 {
				t.Fatalf("%d passes 2 ms after call %d, want one for each", *passes, i+1)
			}
			c.callSoon() // the dataplane has it
			<-time.After(8 * time.Millisecond)
		}
		<-time.After(time.Second)
		*passes = 0
		c.callSoon()
		<-time.After(maxPause - time.Millisecond)
		c.callSoon()
		<-time.After(time.Second)
		if *passes != 1 {
			t.Errorf("%d passes for what the dataplane told, want one for all of it", *passes)
		}
	})
}

func TestPassesTakeHalfOfTheTime(t *testing.T) {
	served(t, 100*time.Millisecond, func(c *calls, passes *int) {
		for range 1000 {
			c.callNow()
			<-time.After(time.Millisecond)
		}
		if *passes < 5 || *passes > 6 {
			t.Errorf("%d passes of 100 ms in a second, want 5 or 6", *passes)
		}
	})
}
