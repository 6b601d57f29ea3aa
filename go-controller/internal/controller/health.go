// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
)

// Alive returns an error if the decision passes or the runner that applies them had no heartbeat for longer than stall.
// Only a restart helps then. stall must be well above five seconds. A loop that waits for the API server or for a
// database is alive.
func (c *Controller) Alive(stall time.Duration) error {
	return loop.Stalled(stall, map[string]*loop.Heartbeat{
		"the decision passes": &c.deciding, "the runner of the dataplane": &c.applying})
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
