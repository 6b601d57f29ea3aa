// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

// sparing has the garbage collector run at half of Go's default growth, unless GOGC says
// otherwise: what we remember is much, and the garbage beside it little.
func sparing() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// trim gives back what the start took, once healthy has had nothing to say for two
// seconds: to read a large cluster takes more than to remember it, and the runtime alone
// would keep that for minutes.
func trim(ctx context.Context, healthy func() error) {
	const calm = 2
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for quiet := 0; quiet < calm; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if quiet++; healthy() != nil {
			quiet = 0
		}
	}
	debug.FreeOSMemory()
}
