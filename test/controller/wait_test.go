// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !comes(ok) {
		t.Fatalf("never: %s", what)
	}
}

// comes asks until it is so, or gives up. It rests as long as it asked: what it waits for needs the processors, too.
func comes(ok func() bool) bool {
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
