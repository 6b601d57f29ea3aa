// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// The delay after a failure, which doubles with each consecutive one.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Minute
)

// retry is the state of something that has failed: how often in succession, and when to try again.
type retry struct {
	failures int
	at       time.Time
}

// next returns the state after one more failure.
func (r retry) next() retry {
	pause := maxBackoff
	if r.failures < 11 {
		pause = min(minBackoff<<r.failures, maxBackoff)
	}
	return retry{failures: r.failures + 1, at: time.Now().Add(pause)}
}
