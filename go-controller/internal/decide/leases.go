// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// withLeases returns the pools with the leases that this process has recorded. A pool's status shows them a second or
// two later, and not all of them if there are very many. The status is used only if the last pass had no pool of that
// name with a delay, for example after a start.
func (o *overlay) withLeases(pools []*world.Pool) []*world.Pool {
	if len(o.leases) == 0 {
		return pools
	}
	out := make([]*world.Pool, len(pools))
	for i, p := range pools {
		if leases, known := o.leases[p.Name]; known {
			updated := *p
			updated.Leases = leases
			p = &updated
		}
		out[i] = p
	}
	return out
}

// addLeases records the addresses granted to a Service between two full decisions. If the Service is deleted before the
// next full decision, that decision must know about them.
func (o *overlay) addLeases(d *Decision, key world.Key, addrs []netip.Addr) {
	for _, a := range addrs {
		pool := d.Allocation.PoolOf(a)
		if leases, known := o.leases[pool]; known {
			o.leases[pool] = append(leases, world.Lease{Addr: a, Service: key})
		}
	}
}

// firstCooldownEnd returns the time when the first cooldown of an address ends, or the zero time if no address is in
// cooldown.
func firstCooldownEnd(a *ipam.Allocation) time.Time {
	var first time.Time
	for _, use := range a.Pools {
		first = world.Earliest(first, use.NextCooldownEnd)
	}
	return first
}
