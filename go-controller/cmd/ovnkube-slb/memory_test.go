// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// What a burst took goes back to the system soon after it, and after the next one, too.
func TestMemoryIsTrimmedAfterEachBurst(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go trim(ctx)
	for range 2 {
		// It must be garbage before trim looks: what is still in use then is not looked at again. So its pages,
		// which resident counts in any case, are not touched, which can take seconds on a busy machine.
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

// resident is the memory of the heap that the system has not got back.
func resident() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64()
}
