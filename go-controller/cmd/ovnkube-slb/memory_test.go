// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// TestMemoryIsTrimmedAfterEachBurst checks that memory is returned to the operating system soon after each burst.
func TestMemoryIsTrimmedAfterEachBurst(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go trim(ctx)
	for range 2 {
		// The allocation must be garbage before trim runs, because trim does not collect it later if it is still in
		// use. Touching its pages can take seconds on a busy machine, so they are not touched. resident counts them
		// anyway.
		garbage := make([]byte, 4*burst)
		before := resident()
		runtime.KeepAlive(garbage)
		tick := time.NewTicker(50 * time.Millisecond)
		for resident() > before-3*burst {
			select {
			case <-ctx.Done():
				t.Fatalf("%d MB, once the burst was over still %d MB", before>>20, resident()>>20)
			case <-tick.C:
			}
		}
		tick.Stop()
	}
}

// resident returns the heap memory that has not been returned to the operating system.
func resident() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64()
}
