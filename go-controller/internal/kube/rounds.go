// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"
)

// Rounds calls round after each wakeup until the context ends. round returns for how long to rest, so that changes in
// this time share the next call, and after how long to call it again without a wakeup, 0 for never.
func Rounds(ctx context.Context, wake <-chan struct{}, round func() (rest, again time.Duration)) {
	rest, retry := time.NewTimer(0), time.NewTimer(0)
	defer rest.Stop()
	defer retry.Stop()
	retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-retry.C:
		}
		pause, again := round()
		if rest.Reset(pause); again > 0 {
			retry.Reset(again)
		}
	}
}

// writeRounds calls write after each wakeup, with a rest of pause between two calls, until the context ends. While
// write returns false, it is called again without a wakeup: after first, then each time after twice as long, up to
// most.
func writeRounds(
	ctx context.Context, wake <-chan struct{}, write func(context.Context) bool, pause, first, most time.Duration,
) {
	retry := first
	Rounds(ctx, wake, func() (rest, again time.Duration) {
		if write(ctx) {
			retry = first
			return pause, 0
		}
		again = retry
		retry = min(2*retry, most)
		return pause, again
	})
}
