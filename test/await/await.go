// SPDX-License-Identifier: Apache-2.0

// Package await waits in tests for states that a real daemon, a process or the kernel reaches by itself.
//
// Tests never assert how long that takes, nor that nothing happens for a while. How they wait is that of package poll.
// Tests without real parts need none of this: they run in a bubble of testing/synctest, whose clock is exact.
package await

import (
	"context"
	"errors"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// Limit is how long a wait lasts at most.
const Limit = poll.Limit

// Context returns a context that ends after Limit, or with the test's cleanup.
func Context(t testing.TB) context.Context {
	t.Helper()
	// Cleanup functions wait as well, when the context of the test has already been canceled.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(t.Context()), Limit,
		errors.New("the state was not reached within "+Limit.String()))
	t.Cleanup(cancel)
	return ctx
}

// True waits until reached returns true. what describes the state.
func True(t testing.TB, what string, reached func() bool) {
	t.Helper()
	NoError(t, what, func(context.Context) error {
		if !reached() {
			return errors.New("not yet")
		}
		return nil
	})
}

// NoError waits until check returns nil. what describes the state. The last error is part of the failure.
func NoError(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	if err := poll.Until(Context(t), check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Receive waits for a value from a channel, or for its end. what describes the value.
func Receive[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	ctx := Context(t)
	select {
	case value = <-from:
	case <-ctx.Done():
		t.Fatalf("%s: %v", what, context.Cause(ctx))
	}
	return value
}
