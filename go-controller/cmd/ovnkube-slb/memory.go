// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// setGCPercent runs the garbage collector at half of Go's default heap growth, unless GOGC is set: the live heap is
// large and the allocation rate low.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

const (
	// burst is the number of allocated bytes from which a garbage collection is worthwhile.
	burst = 64 << 20
	// burstEnd is the number of allocated bytes per second below which a burst is over.
	burstEnd = 4 << 20
)

// trim returns memory to the operating system after each burst of allocations. Reading a large cluster takes much more
// memory than its state, and the runtime alone would keep that memory for minutes.
func trim(ctx context.Context) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var last, trimmed uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(allocated)
		now := allocated[0].Value.Uint64()
		if now-last < burstEnd && now-trimmed > burst {
			debug.FreeOSMemory()
			trimmed = now
		}
		last = now
	}
}
