// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// recovery is how long a fault has to be gone until it is forgotten: a link that flaps
// costs two writes in that time at most, and moves nothing back and forth.
const recovery = 3 * time.Second

// lost says which networks have no way out, by network: those of which every link has
// lost its carrier. A network without links, or with one that may work, is not among them.
func lost(networks map[string]ovn.Uplinks) map[string]string {
	faults := map[string]string{}
	for network, uplinks := range networks {
		var names []string
		for _, link := range uplinks.Links {
			if link.Lost {
				names = append(names, link.Name)
			}
		}
		if len(names) > 0 && len(names) == len(uplinks.Links) {
			faults[network] = fmt.Sprintf("no carrier on %s, which connects bridge %s to network %s", strings.Join(names, ", "), uplinks.Bridge, network)
		}
	}
	return faults
}

// sight is a fault that was seen, and when last.
type sight struct {
	why  string
	last time.Time
}

// sights keeps faults until they have been gone for the time of recovery.
type sights map[string]sight

// see takes note of the faults that there are now, and returns those that count.
func (s sights) see(now time.Time, faults map[string]string) map[string]string {
	for network, why := range faults {
		s[network] = sight{why, now}
	}
	out := map[string]string{}
	for network, f := range s {
		if now.Sub(f.last) > recovery {
			delete(s, network)
			continue
		}
		out[network] = f.why
	}
	return out
}
