// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// recovery is how long a fault must be absent before it is cleared. A flapping link then causes at most two writes in
// that time, and does not move shards back and forth.
const recovery = 3 * time.Second

// uplinkFaults returns the faults of the networks whose bridge does not exist or has no port that could lead out of the
// node, or on which every link has lost its carrier, by network. A network with a link that may work has no fault, and
// neither has one that is reached through another bridge.
func uplinkFaults(networks map[string]ovn.Uplinks) map[string]world.Fault {
	faults := map[string]world.Fault{}
	for network, uplinks := range networks {
		switch {
		case uplinks.Missing:
			faults[network] = world.Fault{Kind: world.FaultUplink, Bridge: uplinks.Bridge, Message: fmt.Sprintf("bridge %s, "+
				"which should lead to network %s, does not exist", uplinks.Bridge, network)}
		case uplinks.Isolated:
			faults[network] = world.Fault{Kind: world.FaultUplink, Bridge: uplinks.Bridge, Message: fmt.Sprintf("bridge %s, "+
				"which should lead to network %s, has no interface of the node as a port", uplinks.Bridge, network)}
		}
		var names []string
		for _, link := range uplinks.Links {
			if link.NoCarrier {
				names = append(names, link.Name)
			}
		}
		if len(names) > 0 && len(names) == len(uplinks.Links) {
			links := strings.Join(names, ", ")
			faults[network] = world.Fault{Kind: world.FaultUplink, Links: links, Bridge: uplinks.Bridge,
				Message: fmt.Sprintf("no carrier on %s, which connects bridge %s to network %s", links, uplinks.Bridge, network)}
		}
	}
	return faults
}

// faultObservation is a fault and when it was last observed.
type faultObservation struct {
	world.Fault
	last time.Time
}

// faultHistory keeps faults until they have been absent for the recovery time.
type faultHistory map[string]faultObservation

// observe records the current faults and returns those in effect.
func (h faultHistory) observe(now time.Time, faults map[string]world.Fault) map[string]world.Fault {
	for network, f := range faults {
		h[network] = faultObservation{f, now}
	}
	out := map[string]world.Fault{}
	for network, f := range h {
		if now.Sub(f.last) > recovery {
			delete(h, network)
			continue
		}
		out[network] = f.Fault
	}
	return out
}
