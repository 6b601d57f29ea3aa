// SPDX-License-Identifier: Apache-2.0

// Package poll waits for states that a real daemon, a process or the kernel reaches by itself. Tests wait by
// test/await, which ends the test if the wait fails.
//
// A wait ends as soon as the state is seen. Limit only ends the waits for states that are never reached, and is the
// same for all of them, so that a result does not depend on the load of the machine.
package poll

import (
	"context"
	"fmt"
	"time"
)

// Limit is how long a wait lasts at most. What takes seconds on an idle machine is reached long before that on a busy
// one.
const Limit = 2 * time.Minute

// The shortest pause between two checks, and the longest after checks that take no time.
const shortest, longest = 10 * time.Millisecond, 250 * time.Millisecond

// Until calls check until it returns nil. When the context ends first, it returns the cause, and the last error of
// check before that.
//
// Most checks run a program, and what is waited for needs the CPU, too: a pause is at least twice as long as the check
// before it, and an eighth of the wait so far, up to a quarter of a second.
func Until(ctx context.Context, check func(context.Context) error) error {
	began := time.Now()
	var last error
	for {
		checked := time.Now()
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil { // otherwise the end of the wait may be the cause
			last = err
		}
		now := time.Now()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(max(shortest, 2*now.Sub(checked), min(now.Sub(began)/8, longest))):
		}
	}
}

// Within is Until with a context that ends after limit.
func Within(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Until(ctx, check)
}
