// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
)

// Another client undoes each repair immediately. The first repairs are made at once, later ones with increasing delays,
// and none is forgotten.
func TestRepairsBackOffAgainstFightingWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []time.Time
		var r *repairs
		r = &repairs{repair: func() bool {
			made = append(made, time.Now())
			if len(made) < dataplane.DriftBurst+5 {
				go r.needed()
			}
			return true
		}}
		start := time.Now()
		r.needed()
		<-time.After(time.Hour)
		synctest.Wait()
		if len(made) != dataplane.DriftBurst+5 {
			t.Fatalf("%d repairs, want %d", len(made), dataplane.DriftBurst+5)
		}
		if at := made[dataplane.DriftBurst].Sub(start); at != 0 {
			t.Errorf("the first %d repairs took %s, want none to wait", dataplane.DriftBurst+1, at)
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
		r := &repairs{repair: func() bool {
			first := !scheduled
			scheduled = true
			return first
		}}
		for range 1000 {
			r.needed()
		}
		scheduled = false // a pass has run
		if r.needed(); !scheduled {
			t.Error("a manual edit after many others waits")
		}
	})
}
