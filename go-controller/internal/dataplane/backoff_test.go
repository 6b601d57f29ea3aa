// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"testing"
	"time"
)

func TestDriftBackoffDoublesUntilDriftEnds(t *testing.T) {
	var b DriftBackoff
	now := time.Unix(1000, 0)
	var got []time.Duration
	for i := range DriftBurst + 9 {
		pause := b.Reported(now)
		if i >= DriftBurst {
			got = append(got, pause/time.Second)
		} else if pause != 0 {
			t.Errorf("report %d: a pause of %s", i, pause)
		}
		now = now.Add(pause + 10*time.Millisecond)
	}
	now = now.Add(3 * time.Minute)
	got = append(got, b.Reported(now)/time.Second)
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 0}; !slices.Equal(got, want) {
		t.Errorf("pauses of %v seconds, want %v", got, want)
	}
}
