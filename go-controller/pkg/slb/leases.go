// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// recall returns the snapshot with the leases as this process knows them. A pool's status
// shows them a second or two later, and not all if there are very many: it counts only where the
// last pass knew no pool with a delay of that name, as at a start.
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

// lease notes what a Service is given between two decisions about everything. Should it
// go before the next one, that one has to know.
func (m *state) lease(d *decision, key world.Key, addrs []netip.Addr) {
	for _, a := range addrs {
		pool := d.allocation.PoolOf(a)
		if leases, known := m.leases[pool]; known {
			m.leases[pool] = append(leases, world.Lease{Addr: a, Service: key})
		}
	}
}

// firstEnd is when the first address has rested enough; zero if none rests.
func firstEnd(a *ipam.Allocation) time.Time {
	var first time.Time
	for _, use := range a.Pools {
		if at := use.RestsUntil; first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// wakeTimer calls at the time that was set last. The zero value never calls.
type wakeTimer struct{ timer *time.Timer }

// set replaces the time; the zero one stands for never.
func (a *wakeTimer) set(at time.Time, call func()) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if !at.IsZero() {
		a.timer = time.AfterFunc(time.Until(at), call)
	}
}
