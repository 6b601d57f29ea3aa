// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// downGracePeriod is how long a daemon must be gone to count as a fault. A process that its monitor process restarts
	// at once (ovn-ctl(8), ovs-ctl(8)) does not count.
	downGracePeriod = 750 * time.Millisecond
	// unresponsiveTimeout is how long a daemon may run without answering. A full recomputation of ovn-controller in a
	// large cluster takes seconds, occurs on all gateways at the same time, and does not stop its other thread from
	// answering neighbour solicitations. ovs-vswitchd takes seconds to change many flows; if it hangs, its BFD sessions
	// go down, and the shards move without this report.
	unresponsiveTimeout = 30 * time.Second
)

// healthTracker tracks the health of a daemon. It has no observations at first.
type healthTracker struct {
	// daemon is the name of the daemon, kind that of its faults in metrics, and consequence what a fault means.
	daemon, consequence string
	kind                world.FaultKind
	// lastReply is when the daemon last answered, lastRunning when it last ran, or else the first check.
	lastReply, lastRunning time.Time
	// observed is true if the daemon has been observed on this node.
	observed bool
}

// newVswitchdTracker returns the tracker of ovs-vswitchd. Without it, ovn-controller keeps the claims of the node: it
// reads the states of BFD sessions from the database, where they stay as they were.
func newVswitchdTracker() *healthTracker {
	return &healthTracker{daemon: "ovs-vswitchd", kind: world.FaultVswitchd,
		consequence: "the node forwards no new connections"}
}

// newControllerTracker returns the tracker of ovn-controller.
func newControllerTracker() *healthTracker {
	return &healthTracker{daemon: "ovn-controller", kind: world.FaultOVNController,
		consequence: "IPv6 neighbour solicitations are not answered"}
}

// observe records a heartbeat and returns the fault, or an empty string.
func (h *healthTracker) observe(now time.Time, p unixctl.ProbeResult) string {
	if h.lastReply.IsZero() || p == unixctl.Answered {
		h.lastReply = now
	}
	if h.lastRunning.IsZero() || p >= unixctl.Silent {
		h.lastRunning = now
	}
	h.observed = h.observed || p != unixctl.Absent
	unresponsive := now.Sub(h.lastReply) >= unresponsiveTimeout
	switch {
	case p == unixctl.Silent && unresponsive:
		return fmt.Sprintf("%s has not answered for %s: %s", h.daemon, unresponsiveTimeout, h.consequence)
	case p < unixctl.Silent && h.observed && (unresponsive || now.Sub(h.lastRunning) >= downGracePeriod):
		return fmt.Sprintf("%s is not running: %s", h.daemon, h.consequence)
	}
	return ""
}
