// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// The pause after a failure, doubled with each one that follows.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Minute
)

// retry remembers a failed attempt: what was tried and when to try again.
type retry struct {
	plan     *plan.Service
	failures int
	at       time.Time
}

// after is the state after one more failure. Another plan than the last one starts anew.
func (t retry) after(tried *plan.Service) retry {
	failures := t.failures
	if !Equal(t.plan, tried) {
		failures = 0
	}
	pause := lastPause
	if failures < 11 {
		pause = min(firstPause<<failures, lastPause)
	}
	return retry{plan: tried, failures: failures + 1, at: time.Now().Add(pause)}
}
