// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"time"
)

// The pause between the starts of two passes: short after quiet, longer in a burst.
const (
	minPause = 5 * time.Millisecond
	maxPause = 50 * time.Millisecond
)

// paced calls pass once for all wakes that came before it started: at once when idle,
// in a burst at most every 50 ms, and never for more than half of the time.
func paced(ctx context.Context, wake <-chan struct{}, pass func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := minPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		start := time.Now()
		pass()
		took := time.Since(start)
		timer.Reset(max(pause-took, took))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if len(wake) > 0 {
			pause = min(2*pause, maxPause)
		} else {
			pause = minPause
		}
	}
}
