// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// UsableEndpoints yields the same endpoints as Endpoints.
func FuzzUsableEndpoints(f *testing.F) {
	random := rand.NewChaCha8([32]byte{})
	for range 200 {
		choices := make([]byte, 2000)
		_, _ = random.Read(choices) // it returns no error
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		w := worldtest.Random(bytes.Clone(choices))
		for _, s := range w.Services {
			for _, family := range []world.Family{world.IPv4, world.IPv6} {
				want, got := map[*world.Endpoint]bool{}, map[*world.Endpoint]bool{}
				for _, e := range plan.Endpoints(s, family) {
					want[e] = true
				}
				for e := range plan.UsableEndpoints(s, family) {
					got[e] = true
				}
				if !maps.Equal(want, got) {
					t.Errorf("%s, %s: %d endpoints, want %d", s.Key, family, len(got), len(want))
				}
			}
		}
	})
}

// Ten endpoints of two thousand ports are not yielded twenty thousand times.
func TestTakingIsBounded(t *testing.T) {
	s := worldtest.Wide(2_000, 10, 1_000)
	n := 0
	for range plan.UsableEndpoints(s, world.IPv4) {
		n++
	}
	if n != 10 {
		t.Errorf("%d endpoints", n)
	}
}
