// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Unavailable returns why not every Service that asks for an address that none has can get it; empty if there is no
// reason. It names Services of all namespaces. About an address in no pool it returns what else has it, empty if
// nothing is known to.
func (a *Allocation) Unavailable(addr netip.Addr) string {
	st := a.allocator.state
	p := st.poolOf(addr)
	if p == nil {
		if use := st.usedAs(addr, world.Key{}); use != "" {
			return fmt.Sprintf("%s is %s", addr, use)
		}
		return ""
	}
	if s := a.Pools[p.Name].Suspended; s.Reason != "" {
		return s.Message
	}
	if !p.canAllocate() {
		_, message := p.unavailableReason()
		return message
	}
	reserved := st.reservations[addr]
	if why := st.unusable(p, addr, reserved); why != "" {
		return why
	}
	if reserved != (world.Key{}) {
		return fmt.Sprintf("pool %q reserves it for Service %s (spec.reservations)", p.Name, reserved)
	}
	if c := st.cooldowns[addr]; c != nil {
		had := make([]string, len(c.of))
		for i, key := range c.of {
			had[i] = key.String()
		}
		return fmt.Sprintf("until %s only those can get it that had it last: %s (spec.reuseDelay of pool %q)",
			formatTime(c.end()), strings.Join(had, ", "), p.Name)
	}
	return ""
}
