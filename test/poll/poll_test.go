// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// Waits leave two thirds of a CPU to what they wait for, and notice a state an eighth of the wait later at most.
func TestChecksGetRarer(t *testing.T) {
	for _, c := range []struct {
		name         string
		check, state time.Duration
		most         int
		until        time.Duration
	}{
		{"a state soon reached", 0, 50 * time.Millisecond, 6, 60 * time.Millisecond},
		{"a check that takes no time", 0, 10 * time.Second, 75, 10*time.Second + 250*time.Millisecond},
		{"a check that runs a program", 300 * time.Millisecond, 9 * time.Second, 11, 9900 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, checks := time.Now(), 0
				if err := poll.Until(t.Context(), func(context.Context) error {
					checks++
					<-time.After(c.check)
					if time.Since(began) < c.state {
						return errors.New("not yet")
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < c.state || took > c.until || checks > c.most {
					t.Errorf("%d checks, returned after %s, want at most %d, and %s", checks, took, c.most, c.until)
				}
			})
		})
	}
}

func TestWaitEndsWithTheErrorBeforeTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, missing := time.Now(), errors.New("2 of 3 replicas")
		err := poll.Within(t.Context(), poll.Limit, func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return missing
		})
		if !errors.Is(err, missing) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != poll.Limit {
			t.Errorf("ended after %s, want %s", took, poll.Limit)
		}
	})
}
