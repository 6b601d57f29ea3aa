// SPDX-License-Identifier: Apache-2.0

package await_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// failing records the failure of a test that waits.
type failing struct {
	testing.TB
	failure string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failureOf returns how a wait fails.
func failureOf(t *testing.T, wait func(testing.TB)) string {
	t.Helper()
	f := &failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait(f)
	}()
	<-ended
	return f.failure
}

func TestWaitEndsWithItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ready = time.Second
		start, events := time.Now(), make(chan int, 1)
		time.AfterFunc(ready, func() { events <- 7 })
		if got := await.Receive(t, "an event", events); got != 7 {
			t.Errorf("event %d, want 7", got)
		}
		await.True(t, "two seconds have passed", func() bool { return time.Since(start) >= 2*ready })
		if took := time.Since(start); took < 2*ready || took > 2*ready+ready/4 {
			t.Errorf("waited until %s, want %s", took, 2*ready)
		}
	})
}

func TestWaitFailsWithTheLastErrorBeforeTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		failure := failureOf(t, func(t testing.TB) {
			await.NoError(t, "three replicas", func(ctx context.Context) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return fmt.Errorf("2 of 3 replicas")
			})
		})
		if !strings.HasPrefix(failure, "three replicas: ") || !strings.HasSuffix(failure, ": 2 of 3 replicas") {
			t.Errorf("failure %q", failure)
		}
		if took := time.Since(start); took != await.Limit {
			t.Errorf("failed after %s, want %s", took, await.Limit)
		}
		failure = failureOf(t, func(t testing.TB) { await.Receive(t, "an event", make(chan int)) })
		if !strings.HasPrefix(failure, "an event: ") {
			t.Errorf("failure %q", failure)
		}
	})
}

func TestCleanupCanWait(t *testing.T) {
	t.Run("cleanup", func(t *testing.T) {
		t.Cleanup(func() {
			await.NoError(t, "the context has not been canceled", func(ctx context.Context) error { return ctx.Err() })
		})
	})
}
