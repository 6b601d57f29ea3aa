// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"
)

const (
	// deadAfter is how long ovn-controller has to be gone: one that its monitor process
	// starts anew at once (ovn-ctl(8)) is none.
	deadAfter = 750 * time.Millisecond
	// hungAfter is how long it may run without an answer. A full recomputation in a large
	// cluster takes seconds, in which its other thread answers neighbour solicitations, and
	// all gateways have them at the same time.
	hungAfter = 30 * time.Second
)

// pulse is what one look at ovn-controller comes to. Of several sockets the greatest counts:
// those that crashed processes left behind say nothing if another one answers.
type pulse int

const (
	// absent: it has no socket, because it ended or never ran.
	absent pulse = iota
	// crashed: it left its socket behind, and nobody listens there.
	crashed
	// silent: it runs, and does not answer in time.
	silent
	answered
)

// vitals is what is known of ovn-controller. The zero value knows nothing.
type vitals struct {
	// alive is when it answered last, or else when we began to look.
	alive time.Time
	// seen: it ran here at some time.
	seen bool
}

// feel takes note of a pulse and says what is wrong, empty for nothing.
func (v *vitals) feel(now time.Time, p pulse) string {
	if v.alive.IsZero() || p == answered {
		v.alive = now
	}
	v.seen = v.seen || p != absent
	const consequence = ": IPv6 neighbours are not answered"
	switch down := now.Sub(v.alive); {
	case p == silent && down >= hungAfter:
		return fmt.Sprintf("ovn-controller has not answered for %s", hungAfter) + consequence
	case p < silent && v.seen && down >= deadAfter:
		return "ovn-controller does not run" + consequence
	}
	return ""
}
