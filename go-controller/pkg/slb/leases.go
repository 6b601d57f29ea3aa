// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// recall returns the snapshot with the leases that this process has recorded. A pool's status shows them a second or
// two later, and not all of them if there are very many. The status is used only if the last pass had no pool of that
// name with a delay, for example after a start.
func (m *state) recall(w *world.Snapshot) *world.Snapshot {
	if len(m.leases) == 0 {
		return w
	}
	out := *w
	out.Pools = make([]*world.Pool, len(w.Pools))
	for i, p := range w.Pools {
		if leases, known := m.leases[p.Name]; known {
			twin := *p
			twin.Leases = leases
			p = &twin
		}
		out.Pools[i] = p
	}
	return &out
}

func (m *state) rememberLeases(w *world.Snapshot, a *ipam.Allocation) {
	m.leases = map[string][]world.Lease{}
	for _, p := range w.Pools {
		if p.ReuseDelay > 0 {
			m.leases[p.Name] = a.Pools[p.Name].Leases
		}
	}
}

// lease records the addresses granted to a Service between two full decisions. If the Service is deleted before the
// next full decision, that decision must know about them.
func (m *state) lease(d *decision, key world.Key, addrs []netip.Addr) {
	for _, a := range addrs {
		pool := d.allocation.PoolOf(a)
		if leases, known := m.leases[pool]; known {
			m.leases[pool] = append(leases, world.Lease{Addr: a, Service: key})
		}
	}
}

// firstEnd returns the time when the first cooldown of an address ends, or the zero time if no address is in cooldown.
func firstEnd(a *ipam.Allocation) time.Time {
	var first time.Time
	for _, use := range a.Pools {
		if at := use.RestsUntil; first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// wakeTimer calls a function at the time that was set last. The zero value never calls one.
type wakeTimer struct{ timer *time.Timer }

// set replaces the time and the function. The zero time disables the timer.
func (a *wakeTimer) set(at time.Time, call func()) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if !at.IsZero() {
		a.timer = time.AfterFunc(time.Until(at), call)
	}
}
