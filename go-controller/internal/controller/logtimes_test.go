// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"
)

func TestNodesAreLoggedOncePerPause(t *testing.T) {
	l, now, n := logTimes{}, time.Unix(1000, 0), 0
	for range 150 {
		if l.allow("n1", now) {
			n++
		}
		now = now.Add(logPause / 100)
	}
	if n != 2 {
		t.Errorf("%d lines in %s, want 2", n, logPause*3/2)
	}
	if !l.allow("n2", now) || len(l) != 2 {
		t.Errorf("another node: %v", l)
	}
	if l.allow("n1", now.Add(logPause)); len(l) != 1 {
		t.Errorf("nodes that were logged long ago are kept: %v", l)
	}
}
