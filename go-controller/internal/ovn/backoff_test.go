// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
)

func TestDriftBackoffDoublesUntilDriftEnds(t *testing.T) {
	var b driftBackoff
	now := time.Unix(1000, 0)
	var got []time.Duration
	for i := range driftBurst + 9 {
		pause := b.reported(now)
		if i >= driftBurst {
			got = append(got, pause/time.Second)
		} else if pause != 0 {
			t.Errorf("report %d: a pause of %s", i, pause)
		}
		now = now.Add(pause + 10*time.Millisecond)
	}
	now = now.Add(3 * time.Minute)
	got = append(got, b.reported(now)/time.Second)
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 0}; !slices.Equal(got, want) {
		t.Errorf("pauses of %v seconds, want %v", got, want)
	}
}

// Another client undoes each of our repairs immediately. The first repairs are made at once, later ones with
// increasing delays.
func TestRepairsBackOffAgainstFightingWriter(t *testing.T) {
	s, _ := ready(t, 1)
	d, events := dial(t, s)
	configure(t, d, topology(1))
	p := service(1, 1, "10.244.1.10")
	apply(t, d, p)
	balancer := strings.Fields(s.nbctl(t, "--bare", "--columns=_uuid", "find", "load_balancer",
		`external_ids:"k8s.ovn.org/owner-type"=Service`))[0]
	spoil := func(round int) {
		s.nbctl(t, "set", "load_balancer", balancer,
			fmt.Sprintf(`vips:"192.0.2.1:80"="192.0.2.%d:80"`, 2+round%200))
	}
	repairs := 0
	var start time.Time // of the backoff
	spoil(0)
	for timeout := time.After(time.Minute); ; {
		select {
		case what := <-events:
			if what != Rows {
				continue
			}
			if repairs++; repairs == driftBurst {
				start = time.Now()
				timeout = time.After(4 * time.Second)
			}
			if failed := d.Apply(t.Context(), []dataplane.Change{{Key: p.Key, Want: p}}); len(failed) > 0 {
				t.Fatal(failed)
			}
			spoil(repairs)
			continue
		case <-timeout:
		}
		break
	}
	if repairs <= driftBurst {
		t.Fatalf("%d repairs, want more than %d", repairs, driftBurst)
	}
	// One repair at once, then after 1, 3, 7, ... seconds.
	if most := 1 + bits.Len(uint(time.Since(start)/firstDriftPause)+1); repairs-driftBurst > most {
		t.Errorf("%d repairs in %s, want at most %d", repairs-driftBurst, time.Since(start), most)
	}
}
