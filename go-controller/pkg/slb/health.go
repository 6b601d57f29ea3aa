// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// beatEvery is the time between two signs of life of a loop that has nothing to do.
const beatEvery = 5 * time.Second

// heartbeat is when a loop last showed that it works. The zero value is of one that does not run.
type heartbeat struct{ last atomic.Pointer[time.Time] }

func (h *heartbeat) beat() {
	now := time.Now()
	h.last.Store(&now)
}

// stop is for a loop that ends.
func (h *heartbeat) stop() { h.last.Store(nil) }

// silent returns for how long a running loop has shown no sign of life.
func (h *heartbeat) silent() time.Duration {
	if last := h.last.Load(); last != nil {
		return time.Since(*last)
	}
	return 0
}

// Alive returns an error if the decision passes or what applies them have shown no sign of life for longer than stall,
// which has to be well above five seconds: then nothing but a restart helps. What waits for the API server or for a
// database is alive.
func (c *Controller) Alive(stall time.Duration) error {
	loops := map[string]*heartbeat{"the decision passes": &c.deciding, "the runner of the network": &c.applying}
	for name, h := range loops {
		if silent := h.silent(); silent > stall {
			return fmt.Errorf("%s: no sign of life for %s", name, silent.Truncate(time.Second))
		}
	}
	return nil
}

// Healthy tells what the controller waits for; nil once it has read all it needs and decided, and as long as it
// is connected to the databases that the mode in force needs.
func (c *Controller) Healthy() error {
	if err := c.watch.Healthy(); err != nil {
		return err
	}
	if !c.decided.Load() {
		return errors.New("nothing decided yet")
	}
	if c.network == nil || c.bare.Load() {
		return nil
	}
	return c.network.Unread()
}

// Missing names the databases that the mode in force needs and that are not connected; nil for none, and before the
// first decision, when the mode is not known. A leader that lacks them for long keeps replicas that may have them
// from leading.
func (c *Controller) Missing() error {
	if c.network == nil || !c.decided.Load() || c.bare.Load() {
		return nil
	}
	return c.network.Unreachable()
}
