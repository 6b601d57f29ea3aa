// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// The delay after a failure, which doubles with each consecutive one.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Minute
)

// retry records a failed attempt: the plan that was tried and when to retry.
type retry struct {
	plan     *plan.Service
	failures int
	at       time.Time
}

// next returns the state after one more failure. A plan that differs from the last one starts at the first delay
// again.
func (t retry) next(tried *plan.Service) retry {
	failures := t.failures
	if !Equal(t.plan, tried) {
		failures = 0
	}
	pause := maxBackoff
	if failures < 11 {
		pause = min(minBackoff<<failures, maxBackoff)
	}
	return retry{plan: tried, failures: failures + 1, at: time.Now().Add(pause)}
}
