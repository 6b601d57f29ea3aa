// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"time"
)

// result computes the result of the stream.
func (s *stream) result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.saw
	r.Lost = r.Sent - len(s.times)
	r.Gap, r.GapAt = longestGap(s.times, s.length)
	slices.Sort(s.delays)
	r.P50, r.P99 = quantile(s.delays, 50), quantile(s.delays, 99)
	for _, t := range s.tracks {
		f := t.saw
		f.Lost = f.Sent - len(t.times)
		f.Gap, f.GapAt = longestGap(t.times, s.length)
		r.Flows = append(r.Flows, f)
	}
	return r
}

// longestGap returns the longest time between two consecutive times, 0 and length included, and where it begins.
func longestGap(times []time.Duration, length time.Duration) (gap, at time.Duration) {
	last := time.Duration(0)
	for _, t := range append(slices.Sorted(slices.Values(times)), length) {
		if t-last > gap {
			gap, at = t-last, last
		}
		last = t
	}
	return gap, at
}

// quantile returns the smallest of the sorted values that at least the given percentage of them does not exceed, or
// zero if there are none.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(1, (len(sorted)*percent+99)/100)-1]
}
