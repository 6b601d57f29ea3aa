// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Gateways whose flows were stale a short while ago are usable: nothing is wrong that an administrator could repair.
func TestRecentlyStaleGatewaysAreUsable(t *testing.T) {
	var state decide.State
	key := world.Key{Namespace: "shop", Name: "web"}
	s := worldtest.Service(key, 1)
	w := worldtest.OnBrEx(s)
	report := func(stale ...string) (*decide.Decision, int) {
		for _, n := range w.Nodes {
			worldtest.ReportStale(n, stale...)
		}
		d := state.Decide(w)
		return d, NewBuilder(d, Observed{}).GatewayCounts(d.Layout.Domains[0]).Usable
	}
	d, _ := report()
	s.Assigned = d.Allocation.Services[key].Addrs
	s.Given = s.Assigned
	if _, usable := report(s.Assigned[0].String()); usable != 0 {
		t.Errorf("with stale flows, %d gateways are usable", usable)
	}
	d, usable := report()
	if len(d.Layout.Domains[0].RecentlyStale) != 3 || usable != 3 {
		t.Errorf("%d of %v are usable", usable, d.Layout.Domains[0].RecentlyStale)
	}
}
