// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// sparing has the garbage collector run at half of Go's default growth, unless GOGC says
// otherwise: what we remember is much, and the garbage beside it little.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

const (
	// burst is how much must have been allocated to make it worth while to collect garbage.
	burst = 64 << 20
	// burstEnd is how little of that a second may have for the burst to be over.
	burstEnd = 4 << 20
)

// trim gives back what a burst of work took, once it is over: to read a large cluster takes
// much more than to remember it, and the runtime alone would keep that for minutes.
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
