// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// Another client may rewrite in a loop what we apply. After DriftBurst repairs without a gap of driftQuiet between any
// two of them, each repair waits twice as long as the previous one. Manual edits are repaired at once.
const (
	DriftBurst      = 64
	driftQuiet      = 30 * time.Second
	FirstDriftPause = time.Second
	lastDriftPause  = time.Minute
)

// DriftBackoff computes the pause after which the next change of another client is repaired. The zero value has
// repaired none.
type DriftBackoff struct {
	count int
	pause time.Duration
	last  time.Time
}

// Reported records a repair and returns the pause before the next one.
func (b *DriftBackoff) Reported(now time.Time) time.Duration {
	if now.Sub(b.last) > max(driftQuiet, 2*b.pause) {
		*b = DriftBackoff{}
	}
	b.last = now
	if b.count++; b.count > DriftBurst {
		b.pause = min(max(2*b.pause, FirstDriftPause), lastDriftPause)
	}
	return b.pause
}
