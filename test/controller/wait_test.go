// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("never: %s", what)
	}
}

// poll polls until ok returns true, and reports whether it did within the timeout. It pauses as long as the last call
// took, because the awaited processes need CPU time, too.
func poll(ok func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for asked := time.Now(); !ok(); asked = time.Now() {
		select {
		case <-deadline.C:
			return false
		case <-time.After(max(10*time.Millisecond, time.Since(asked))):
		}
	}
	return true
}

// settled waits until nothing has been written for the time quiet, and returns the counts.
func settled(t *testing.T, counts func() [2]int) [2]int {
	t.Helper()
	last, since := counts(), time.Now()
	eventually(t, "nothing more is written", func() bool {
		if now := counts(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quietPeriod
	})
	return last
}
