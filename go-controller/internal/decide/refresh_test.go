// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Stale flows for addresses of other domains, or flows that a status rewrite cannot repair, are not faults of a
// gateway's bridge.
func TestBridgeFaultsCountRefreshableAddressesOfTheDomain(t *testing.T) {
	var m State
	far, external := worldtest.Service(world.Key{Namespace: "shop", Name: "far"}, 2),
		worldtest.Service(world.Key{Namespace: "shop", Name: "external"}, 3)
	far.Assigned = []netip.Addr{netip.MustParseAddr("203.0.113.5")}
	far.Given = far.Assigned
	external.ExternalIPs = []netip.Addr{netip.MustParseAddr("10.50.0.9")}
	w := worldtest.OnBrEx(far, external)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n, "10.50.0.9", "203.0.113.5")
	}
	d := m.Decide(w)
	if out := d.Layout.Domains[0].Excluded; len(out) > 0 {
		t.Errorf("excluded: %v", out)
	}
	if len(m.refreshes) > 0 || !d.Due.IsZero() {
		t.Errorf("refreshes %v, due %s", m.refreshes, d.Due)
	}
}

// A rewrite that does not reach the status does not cause endless passes, and alternating reports do not cause a storm
// of writes.
func TestRefreshesKeepTheirDelay(t *testing.T) {
	var m State
	s := worldtest.Service(web, 1)
	w := worldtest.OnBrEx(s)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	s.Assigned = m.Decide(w).Allocation.Services[web].Addrs
	s.Given = s.Assigned
	stale := func(is bool) *Decision {
		for _, n := range w.Nodes {
			if is {
				worldtest.ReportStale(n, s.Assigned[0].String())
			} else {
				worldtest.ReportStale(n)
			}
		}
		return m.Decide(w)
	}
	stale(true)
	w.Now = w.Now.Add(time.Hour) // and the status still does not list the ports
	if d := stale(true); d.Due.Before(w.Now.Add(firstRefresh)) {
		t.Errorf("at %s a pass is due at %s", w.Now, d.Due)
	}
	s.ListsPorts = true
	stale(true) // the second rewrite, with a longer delay after it
	s.ListsPorts = false
	next := m.refreshes[web].next
	for range 5 {
		stale(false)
		stale(true)
	}
	if got := m.refreshes[web]; got.next != next || got.lists {
		t.Errorf("after reports that alternate: %+v, want nothing before %s", got, next)
	}
}
