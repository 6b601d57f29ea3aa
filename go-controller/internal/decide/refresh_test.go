// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"
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

// A Service whose status can't be rewritten does not keep the gateways of all others faulty. After a minute its
// address counts no longer, also against a gateway that joins, until the status is rewritten, unless most addresses of
// the domain are stale there.
func TestRefreshThatIsNeverWrittenCountsForAMinute(t *testing.T) {
	var m State
	s, sound := worldtest.Service(web, 1), worldtest.Service(world.Key{Namespace: "shop", Name: "sound"}, 2)
	w := worldtest.OnBrEx(s, sound)
	report := func(stale ...string) {
		for _, n := range w.Nodes {
			worldtest.ReportStale(n, stale...)
		}
	}
	report()
	d := m.Decide(w)
	for _, s := range w.Services {
		s.Assigned = d.Allocation.Services[s.Key].Addrs
		s.Given = s.Assigned
	}
	excluded := func() int { return len(m.Decide(w).Layout.Domains[0].Excluded) }
	report(s.Assigned[0].String())
	end := w.Now.Add(time.Minute)
	for d = m.Decide(w); w.Now.Before(end); d = m.Decide(w) {
		if !d.Due.After(w.Now) {
			t.Fatalf("at %s a pass is due at %s", w.Now, d.Due)
		}
		if n := len(d.Layout.Domains[0].Excluded); w.Now.Before(end.Add(-30*time.Second)) && n != 3 {
			t.Errorf("at %s %d gateways are excluded", w.Now, n)
		}
		w.Now = d.Due
	}
	if n := excluded(); n > 0 {
		t.Errorf("after a minute, %d gateways are excluded", n)
	}
	s.ListsPorts = true
	if n := excluded(); n != 3 {
		t.Errorf("rewritten at last, the address counts against %d gateways", n)
	}
}

// A flow that stays stale although the status is rewritten counts after two rewrites only if most addresses of the
// domain have such flows there: then OVN-Kubernetes recomputes none. An address that was repaired counts again when it
// is stale anew, but is not rewritten more often because of that. That of another Service is.
func TestFlowThatIsNotRepairedCountsForTwoRewrites(t *testing.T) {
	var m State
	services := []*world.Service{worldtest.Service(web, 1), worldtest.Service(world.Key{Namespace: "shop", Name: "b"}, 2),
		worldtest.Service(world.Key{Namespace: "shop", Name: "c"}, 3)}
	w := worldtest.OnBrEx(services...)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	d := m.Decide(w)
	var addrs []string
	for _, s := range services {
		s.Assigned = d.Allocation.Services[s.Key].Addrs
		s.Given = s.Assigned
		addrs = append(addrs, s.Assigned[0].String())
	}
	rewrites := 0
	pass := func(seconds int) (excluded []string) {
		w.Now = w.Now.Add(time.Duration(seconds) * time.Second)
		d := m.Decide(w)
		for _, s := range services {
			rewritten := *s
			rewritten.ListsPorts = d.ListsPorts(s)
			*s = rewritten
		}
		rewrites += len(d.Refreshed)
		for _, out := range d.Layout.Domains[0].Excluded {
			excluded = append(excluded, out.Node)
		}
		return excluded
	}
	worldtest.ReportStale(w.Nodes[0], addrs...) // recomputes no flow
	worldtest.ReportStale(w.Nodes[1], addrs[0]) // has one that is left over
	worldtest.ReportStale(w.Nodes[2], addrs[0])
	if got := pass(0); len(got) != 3 {
		t.Errorf("at first, excluded: %v", got)
	}
	for range 12 {
		pass(5)
	}
	if got := pass(0); !slices.Equal(got, []string{"n1"}) || rewrites < 6 {
		t.Errorf("after a minute and %d rewrites, excluded: %v", rewrites, got)
	}
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	pass(1)
	before := m.refreshes[web]
	worldtest.ReportStale(w.Nodes[1], addrs[0]) // it joins a moment after the flow was repaired elsewhere
	if got := pass(1); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("stale again after it was repaired, excluded: %v", got)
	}
	if now := m.refreshes[web]; now.next != before.next || now.wait != before.wait {
		t.Errorf("the next rewrite is not before %s, then %s; want %s and %s", now.next, now.wait, before.next, before.wait)
	}
	if pass(30); len(pass(0)) > 0 {
		t.Errorf("still stale after half a minute, excluded: %v", pass(0))
	}
	services[0].UID = "created again"
	pass(1)
	if got := pass(1); !slices.Equal(got, []string{"n2"}) || m.refreshes[web].wait >= before.wait {
		t.Errorf("another Service has the address, excluded: %v, refresh %+v", got, m.refreshes[web])
	}
	worldtest.ReportStale(w.Nodes[1])
	pass(1)
	worldtest.ReportStale(w.Nodes[1], addrs[0])
	if got := pass(1800); !slices.Equal(got, []string{"n2"}) || !slices.Equal(pass(1), got) {
		t.Errorf("stale again much later, excluded: %v, then %v", got, pass(0))
	}
}
