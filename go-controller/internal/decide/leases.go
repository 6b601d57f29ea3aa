// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// withLeases returns the snapshot with the leases that this process has recorded. A pool's status shows them a second
// or two later, and not all of them if there are very many. The status is used only if the last pass had no pool of
// that name with a delay, for example after a start.
func (st *State) withLeases(w *world.Snapshot) *world.Snapshot {
	if len(st.leases) == 0 {
		return w
	}
	out := *w
	out.Pools = make([]*world.Pool, len(w.Pools))
	for i, p := range w.Pools {
		if leases, known := st.leases[p.Name]; known {
			twin := *p
			twin.Leases = leases
			p = &twin
		}
		out.Pools[i] = p
	}
	return &out
}

func (st *State) saveLeases(w *world.Snapshot, a *ipam.Allocation) {
	st.leases = map[string][]world.Lease{}
	for _, p := range w.Pools {
		if p.ReuseDelay > 0 {
			st.leases[p.Name] = a.Pools[p.Name].Leases
		}
	}
}

// addLeases records the addresses granted to a Service between two full decisions. If the Service is deleted before the
// next full decision, that decision must know about them.
func (st *State) addLeases(d *Decision, key world.Key, addrs []netip.Addr) {
	for _, a := range addrs {
		pool := d.Allocation.PoolOf(a)
		if leases, known := st.leases[pool]; known {
			st.leases[pool] = append(leases, world.Lease{Addr: a, Service: key})
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
