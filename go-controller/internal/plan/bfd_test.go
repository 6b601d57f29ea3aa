// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
)

func TestTunnelIntervalGoldens(t *testing.T) {
	golden.RunArchives(t, "testdata/bfd/*.txtar", func(archive *txtar.Archive) (string, error) {
		var out strings.Builder
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			var nodes int
			var text string
			if _, err := fmt.Sscan(line, &nodes, &text); err != nil {
				return "", fmt.Errorf("%q: %w", line, err)
			}
			detect, err := time.ParseDuration(text)
			if err != nil {
				return "", err
			}
			interval := plan.TunnelInterval(detect, nodes)
			frames := 2 * float64(max(0, nodes-1)) / interval.Seconds()
			fmt.Fprintf(&out, "%d nodes, %s: every %s, %.0f frames/s\n", nodes, detect, interval, frames)
		}
		return out.String(), nil
	})
}

// A longer interval is never shorter than the wished one, never decreases with the number of nodes, and keeps the load
// below the bound for as many nodes as the slowest interval allows.
func TestTunnelIntervalIsBoundedAndMonotonic(t *testing.T) {
	for _, detect := range []time.Duration{50, 100, 200, 333, 1000, 5000} {
		detect *= time.Millisecond
		last := time.Duration(0)
		for nodes := range 6000 {
			interval := plan.TunnelInterval(detect, nodes)
			if interval < detect || interval < last {
				t.Fatalf("%d nodes, %s: every %s, after %s with a node less", nodes, detect, interval, last)
			}
			if frames := 2 * float64(nodes-1) / interval.Seconds(); frames > plan.MaxBFDFrames && interval < time.Second {
				t.Fatalf("%d nodes, %s: every %s, %f frames/s", nodes, detect, interval, frames)
			}
			last = interval
		}
	}
}
