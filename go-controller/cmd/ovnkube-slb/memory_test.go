// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemoryIsTrimmedAfterEachBurst checks that memory is returned to the operating system two seconds after a burst.
func TestMemoryIsTrimmedAfterEachBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go trim(ctx)
		for range 2 {
			// The allocation must be garbage before trim runs, because trim does not collect it later if it is still in
			// use. Its pages are not touched, which would take long. resident counts them anyway.
			garbage := make([]byte, 4*burst)
			before := resident()
			runtime.KeepAlive(garbage)
			<-time.After(2 * time.Second)
			synctest.Wait()
			if is := resident(); is > before-3*burst {
				t.Errorf("%d MB, once the burst was over still %d MB", before>>20, is>>20)
			}
		}
	})
}

// resident returns the heap memory that has not been returned to the operating system.
func resident() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64()
}
