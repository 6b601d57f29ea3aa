// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// bfdComesUp is how much longer than the detection time BFD may take to come up in an Established session.
const bfdComesUp = 10 * time.Second

// whyNotUp returns why BFD is not up although the session has been Established for long enough; empty if it is up or
// may still come up. Nor is it known while an edit waits for its turn: BFD is as it was before. No event reports that
// the time is over: the callers of States look from time to time.
func (s *State) whyNotUp(is Liveness, want *bgp.Session) string {
	if s.Phase != Established || is.State == "" || is.Up || s.Outdated || want == nil || want.BFD == nil || want.Leaving {
		return ""
	}
	since := s.Since
	if is.Since.After(since) {
		since = is.Since
	}
	detection := time.Duration(want.BFD.Multiplier) * max(want.BFD.Transmit, want.BFD.Receive)
	if time.Since(since) < detection+bfdComesUp {
		return ""
	}
	port := 3784
	if want.BFD.Multihop {
		port = 4784
	}
	switch {
	case is.State == bfd.Init.String():
		return fmt.Sprintf("the router sends BFD packets, but does not receive those of the node: check firewalls on the "+
			"way (UDP port %d)", port)
	case is.Received:
		return "the router sends BFD packets, but keeps its session down: check that it is not shut down there"
	}
	return fmt.Sprintf("no BFD packets arrive from the router: check that it has BFD enabled for this neighbor, and "+
		"firewalls on the way (UDP port %d)", port)
}
