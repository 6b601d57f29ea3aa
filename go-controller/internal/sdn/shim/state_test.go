// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	repeat := func(p pulse, n int) []pulse {
		var list []pulse
		for range n {
			list = append(list, p)
		}
		return list
	}
	for name, c := range map[string]struct {
		pulses []pulse // one a second
		lost   bool
	}{
		"well":                                {[]pulse{well, well}, false},
		"silent twice":                        {[]pulse{well, silent, silent}, false},
		"silent three times":                  {[]pulse{well, silent, silent, silent}, true},
		"silent three times, not in a row":    {[]pulse{silent, silent, well, silent, silent}, false},
		"back for a moment":                   {[]pulse{silent, silent, silent, well, well}, true},
		"back":                                {[]pulse{silent, silent, silent, well, well, well}, false},
		"says that it can't":                  {[]pulse{well, unfit}, true},
		"nobody listens, the kernel holds on": {append([]pulse{well}, repeat(refused, 12)...), false},
		"nobody listens for too long":         {append([]pulse{well}, repeat(refused, 13)...), true},
		"somebody listens again":              {append(repeat(refused, 10), append([]pulse{well}, repeat(refused, 10)...)...), false},
		"silent and refused in turn":          {[]pulse{silent, refused, silent, refused, silent, silent}, false},
	} {
		var s state
		now := time.Unix(1000, 0)
		for _, p := range c.pulses {
			s.feel(now, p, "why")
			now = now.Add(time.Second)
		}
		if (s.lost != "") != c.lost {
			t.Errorf("%s: lost %q, want lost: %v", name, s.lost, c.lost)
		}
	}
}

// A new controller knows within a second or so who is lost.
func TestFirstQuestionsFollowEachOther(t *testing.T) {
	var s state
	var took time.Duration
	for s.lost == "" {
		took += s.feel(time.Unix(1000, 0).Add(took), silent, "why")
	}
	if took -= probeEvery; took > time.Second {
		t.Errorf("a node that is silent from the start is lost after %s", took)
	}
	if wait := s.feel(time.Unix(2000, 0), silent, "why"); wait != probeEvery {
		t.Errorf("the next question comes after %s", wait)
	}
}
