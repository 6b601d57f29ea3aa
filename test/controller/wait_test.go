// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// settled waits until nothing has been written for a while, and returns the counts.
func settled(t *testing.T, counts func() [2]int) [2]int {
	t.Helper()
	last, since := counts(), time.Now()
	eventually(t, "nothing more is written", func() bool {
		if now := counts(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet
	})
	return last
}
