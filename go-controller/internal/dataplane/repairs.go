// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync"
	"time"
)

// Repairs decides when changes of other clients are repaired: at once, unless they never end (DriftBackoff).
type Repairs struct {
	// repair schedules a repair. It returns false if one was scheduled already, which covers this change, too.
	repair func() bool

	mu      sync.Mutex
	backoff DriftBackoff
	// free is the earliest time of the next repair. until is set while one waits for that time.
	free  time.Time
	until *time.Timer
}

// NewRepairs returns Repairs that call a function to schedule a repair. It must not block, and returns false if one was
// scheduled already.
func NewRepairs(schedule func() bool) *Repairs { return &Repairs{repair: schedule} }

// Needed is called for each change of another client.
func (r *Repairs) Needed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until != nil {
		return
	}
	wait := time.Until(r.free)
	if wait <= 0 {
		r.repairNow()
		return
	}
	r.until = time.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.until = nil
		r.repairNow()
	})
}

// repairNow repairs now. r.mu must be held.
func (r *Repairs) repairNow() {
	if now := time.Now(); r.repair() {
		r.free = now.Add(r.backoff.Reported(now))
	}
}
