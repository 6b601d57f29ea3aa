// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
)

const (
	// downGracePeriod is how long ovn-controller must be gone to count as a fault. A process that its monitor process
	// restarts at once (ovn-ctl(8)) does not count.
	downGracePeriod = 750 * time.Millisecond
	// unresponsiveTimeout is how long ovn-controller may run without answering. A full recomputation in a large cluster
	// takes seconds, occurs on all gateways at the same time, and does not stop its other thread from answering neighbour
	// solicitations.
	unresponsiveTimeout = 30 * time.Second
)

// healthTracker tracks the health of ovn-controller. The zero value has no observations.
type healthTracker struct {
	// lastReply is when ovn-controller last answered, lastRunning when it last ran, or else the first check.
	lastReply, lastRunning time.Time
	// observed is true if ovn-controller has been observed on this node.
	observed bool
}

// observe records a heartbeat and returns the fault, or an empty string.
func (v *healthTracker) observe(now time.Time, p unixctl.ProbeResult) string {
	if v.lastReply.IsZero() || p == unixctl.Answered {
		v.lastReply = now
	}
	if v.lastRunning.IsZero() || p >= unixctl.Silent {
		v.lastRunning = now
	}
	v.observed = v.observed || p != unixctl.Absent
	const consequence = ": IPv6 neighbour solicitations are not answered"
	unresponsive := now.Sub(v.lastReply) >= unresponsiveTimeout
	switch {
	case p == unixctl.Silent && unresponsive:
		return fmt.Sprintf("ovn-controller has not answered for %s", unresponsiveTimeout) + consequence
	case p < unixctl.Silent && v.observed && (unresponsive || now.Sub(v.lastRunning) >= downGracePeriod):
		return "ovn-controller is not running" + consequence
	}
	return ""
}
