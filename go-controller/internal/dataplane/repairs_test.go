// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"testing/synctest"
	"time"
)

// Another client undoes each repair immediately. The first repairs are made at once, later ones with increasing delays,
// and none is forgotten.
func TestRepairsBackOffAgainstFightingWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []time.Time
		var r *Repairs
		r = NewRepairs(func() bool {
			made = append(made, time.Now())
			if len(made) < DriftBurst+5 {
				go r.Needed()
			}
			return true
		})
		start := time.Now()
		r.Needed()
		<-time.After(time.Hour)
		synctest.Wait()
		if len(made) != DriftBurst+5 {
			t.Fatalf("%d repairs, want %d", len(made), DriftBurst+5)
		}
		if at := made[DriftBurst].Sub(start); at != 0 {
			t.Errorf("the first %d repairs took %s, want none to wait", DriftBurst+1, at)
		}
		if at := made[len(made)-1].Sub(start); at != (1+2+4+8)*time.Second {
			t.Errorf("the last repair was made after %s", at)
		}
	})
}

// A thousand changes that one repair covers count as one.
func TestChangesThatOneRepairCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheduled := false
		r := NewRepairs(func() bool {
			first := !scheduled
			scheduled = true
			return first
		})
		for range 1000 {
			r.Needed()
		}
		scheduled = false // a pass has run
		if r.Needed(); !scheduled {
			t.Error("a manual edit after many others waits")
		}
	})
}
