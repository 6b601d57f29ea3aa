// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
)

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
			if repairs++; repairs == dataplane.DriftBurst {
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
	if repairs <= dataplane.DriftBurst {
		t.Fatalf("%d repairs, want more than %d", repairs, dataplane.DriftBurst)
	}
	// One repair at once, then after 1, 3, 7, ... seconds.
	if most := 1 + bits.Len(uint(time.Since(start)/dataplane.FirstDriftPause)+1); repairs-dataplane.DriftBurst > most {
		t.Errorf("%d repairs in %s, want at most %d", repairs-dataplane.DriftBurst, time.Since(start), most)
	}
}
