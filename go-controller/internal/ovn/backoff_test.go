// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
)

// Another client undoes each of our repairs immediately. The first repairs are made at once, later ones with
// increasing delays. Rows that differ because of changed inputs are repaired without delays.
func TestRepairsBackOffAgainstFightingWriter(t *testing.T) {
	const repairs = dataplane.DriftBurst + 5
	for name, c := range map[string]struct {
		foreign bool
		takes   time.Duration
	}{
		"our rows were changed":            {true, (1 + 2 + 4 + 8) * time.Second},
		"rows ours depend on have changed": {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported := make(chan EventKind)
				f := newDrift(&Dataplane{changed: func(k EventKind) { reported <- k }})
				f.differs = func(pendingChecks) (string, bool) { return "load balancers", c.foreign }
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- f.run(ctx) }()
				start := time.Now()
				for range repairs {
					f.addSuspects(func(s *pendingChecks) { s.topology = true })
					if kind := <-reported; kind != Rows {
						t.Errorf("event %d, want %d", kind, Rows)
					}
				}
				if took := time.Since(start); took != c.takes {
					t.Errorf("%d repairs took %s, want %s", repairs, took, c.takes)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
