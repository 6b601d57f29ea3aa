// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// beatEvery is the time between two heartbeats of an idle loop.
const beatEvery = 5 * time.Second

// heartbeat records when a loop last made progress. The zero value belongs to a loop that is not running.
type heartbeat struct{ last atomic.Pointer[time.Time] }

func (h *heartbeat) beat() {
	now := time.Now()
	h.last.Store(&now)
}

// stop records that the loop has ended.
func (h *heartbeat) stop() { h.last.Store(nil) }

// silent returns the time since the last heartbeat of a running loop, or 0 if the loop is not running.
func (h *heartbeat) silent() time.Duration {
	if last := h.last.Load(); last != nil {
		return time.Since(*last)
	}
	return 0
}

// Alive returns an error if the decision passes or the runner that applies them had no heartbeat for longer than stall.
// Only a restart helps then. stall must be well above five seconds. A loop that waits for the API server or for a
// database is alive.
func (c *Controller) Alive(stall time.Duration) error {
	loops := map[string]*heartbeat{"the decision passes": &c.deciding, "the runner of the dataplane": &c.applying}
	for name, h := range loops {
		if silent := h.silent(); silent > stall {
			return fmt.Errorf("%s: no heartbeat for %s", name, silent.Truncate(time.Second))
		}
	}
	return nil
}

// Healthy returns an error that describes what the controller is waiting for. It returns nil once the controller has
// read everything it needs and made its first decision, and as long as it is connected to the databases that the
// current mode needs.
func (c *Controller) Healthy() error {
	if err := c.watch.Healthy(); err != nil {
		return err
	}
	if !c.decided.Load() {
		return errors.New("the first pass has not completed")
	}
	if c.observer == nil || c.withoutLayer2.Load() {
		return nil
	}
	return c.observer.Unread()
}

// Missing returns an error that names the databases that the current mode needs and that are not connected. It returns
// nil if there are none, and before the first decision, when the mode is not known. A leader without these databases
// keeps other replicas, which may be connected to them, from leading.
func (c *Controller) Missing() error {
	if c.observer == nil || !c.decided.Load() || c.withoutLayer2.Load() {
		return nil
	}
	return c.observer.Unreachable()
}
