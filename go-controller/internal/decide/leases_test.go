// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The status of a pool is written a second later, or never if an address is allocated and released in less time. The
// leases of the last pass count.
func TestLeasesNotSeenYetAreKnown(t *testing.T) {
	var m State
	start := time.Unix(1000, 0)
	at := func(seconds int, services ...*world.Service) *world.Snapshot {
		w := worldtest.Small(1, services...)
		w.Now = start.Add(time.Duration(seconds) * time.Second)
		w.Pools[0].ReuseDelay = 10 * time.Second
		return w
	}
	first := worldtest.Service(web, 1)
	other := worldtest.Service(world.Key{Namespace: "shop", Name: "other"}, 2)
	if got := m.Decide(at(0, first)).Allocation.Services[web].Addrs; len(got) != 1 {
		t.Fatalf("web has %v, want an address", got)
	}
	seen := at(1, other)
	d := m.Decide(seen)
	if got := d.Allocation.Services[other.Key]; len(got.Addrs) != 0 {
		t.Errorf("other has %v during the cooldown of the address", got.Addrs)
	}
	if end := firstCooldownEnd(d.Allocation); !end.Equal(start.Add(11 * time.Second)) {
		t.Errorf("the rest ends at %s, want 11 s after the start", end.Sub(start))
	}
	if len(seen.Pools[0].Leases) != 0 {
		t.Error("the snapshot was changed")
	}
	// A process that starts now has only the status of the pool.
	fresh := at(5, other)
	fresh.Pools[0].Leases = slices.Clone(d.Allocation.Pools["lan"].Leases)
	var started State
	if end := firstCooldownEnd(started.Decide(fresh).Allocation); !end.Equal(start.Add(11 * time.Second)) {
		t.Errorf("after a restart the rest ends at %s, want 11 s after the start", end.Sub(start))
	}
	// A status that differs from the state of this process is stale.
	stale := at(5, other)
	stale.Pools[0].Leases = []world.Lease{{Addr: stale.Pools[0].Ranges[0].From(), Service: other.Key}}
	if got := m.Decide(stale).Allocation.Services[other.Key]; len(got.Addrs) != 0 {
		t.Errorf("other has %v by a lease of the status", got.Addrs)
	}
	d = m.Decide(at(11, other))
	if got := d.Allocation.Services[other.Key]; len(got.Addrs) != 1 {
		t.Errorf("the delay has passed: %+v, want the address", got)
	}
	if end := firstCooldownEnd(d.Allocation); !end.IsZero() {
		t.Errorf("a cooldown ends at %s, want none", end)
	}
	// Without a delay, no leases are kept.
	none := at(12)
	none.Pools[0].ReuseDelay = 0
	m.Decide(none)
	if len(m.overlay.leases) != 0 {
		t.Errorf("leases %v, want none", m.overlay.leases)
	}
}

// Leases are also known for a Service that is added and deleted between two full decisions.
func TestLeasesOfNewcomersAreKnown(t *testing.T) {
	var m State
	w := worldtest.Small(2, worldtest.Service(world.Key{Namespace: "shop", Name: "stays"}, 1))
	w.Now = time.Unix(1000, 0)
	w.Pools[0].ReuseDelay = 10 * time.Second
	d := m.Decide(w)
	comes := worldtest.Service(web, 2)
	if !m.Amend(d, web, world.Change{Is: comes}) || len(d.Allocation.Services[web].Addrs) != 1 {
		t.Fatalf("web is not admitted: %+v", d.Allocation.Services[web])
	}
	if m.Amend(d, web, world.Change{Was: comes}) {
		t.Error("web is released and the cooldown of its address is not recorded")
	}
	other := worldtest.Service(world.Key{Namespace: "shop", Name: "other"}, 3)
	again := *w
	again.Services = append(slices.Clone(w.Services), other)
	if got := m.Decide(&again).Allocation.Services[other.Key]; string(got.Reason) != v1alpha1.ReasonPoolExhausted {
		t.Errorf("other: %+v during the cooldown of the address", got)
	}
}
