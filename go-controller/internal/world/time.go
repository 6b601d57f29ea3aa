// SPDX-License-Identifier: Apache-2.0

package world

import "time"

// Earliest returns the earliest of times. The zero time means never.
func Earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
