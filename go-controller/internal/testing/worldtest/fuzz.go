// SPDX-License-Identifier: Apache-2.0

package worldtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Fuzz checks one property of random snapshots: 300 of them in a plain go test, which r determines. Their seeds
// have from least to below most bytes.
func Fuzz(f *testing.F, r *rand.Rand, least, most int, check func(t *testing.T, w *world.Snapshot)) {
	f.Helper()
	for range 300 {
		seed := make([]byte, least+r.IntN(most-least))
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		check(t, Random(bytes.Clone(choices)))
	})
}
