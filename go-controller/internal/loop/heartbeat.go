// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"sync/atomic"
	"time"
)

// BeatInterval is the time between two heartbeats of an idle loop.
const BeatInterval = 5 * time.Second

// Heartbeat records when a loop last made progress. The zero value belongs to a loop that is not running. All methods
// may be called from any goroutine.
type Heartbeat struct{ last atomic.Pointer[time.Time] }

// Beat records progress.
func (h *Heartbeat) Beat() {
	now := time.Now()
	h.last.Store(&now)
}

// Stop records that the loop has ended.
func (h *Heartbeat) Stop() { h.last.Store(nil) }

// Running reports whether the loop has begun and not ended.
func (h *Heartbeat) Running() bool { return h.last.Load() != nil }

// Silent returns the time since the last heartbeat of a running loop, or 0 if the loop is not running.
func (h *Heartbeat) Silent() time.Duration {
	if last := h.last.Load(); last != nil {
		return time.Since(*last)
	}
	return 0
}

// Stalled returns an error that names a loop without a heartbeat for longer than stall, or nil if there is none. stall
// must be well above BeatInterval.
func Stalled(stall time.Duration, loops map[string]*Heartbeat) error {
	for name, h := range loops {
		if silent := h.Silent(); silent > stall {
			return fmt.Errorf("%s: no heartbeat for %s", name, silent.Truncate(time.Second))
		}
	}
	return nil
}
