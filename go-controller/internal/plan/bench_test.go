// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Plans of 10,000 Services with 20 endpoints each.
func BenchmarkPlan(b *testing.B) {
	w := worldtest.Large(10_000, 20)
	reachability := plan.NewReachability(w)
	vips := []plan.VIP{{Addr: netip.MustParseAddr("10.0.0.1")}}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range w.Services {
			if p := plan.For(s, vips, reachability); len(p.Listeners[0].Backends) != 20 {
				b.Fatalf("%s has %d backends", s.Key, len(p.Listeners[0].Backends))
			}
		}
	}
}

// The plan of a Service of 10,000 ports and 50 pods.
func BenchmarkWidePlan(b *testing.B) {
	s, reachability := worldtest.Wide(10_000, 50, 50), plan.NewReachability(&world.Snapshot{})
	vips := []plan.VIP{{Addr: netip.MustParseAddr("192.0.2.1")}}
	b.ReportAllocs()
	for b.Loop() {
		if p := plan.For(s, vips, reachability); len(p.Listeners) != 10_000 || len(p.Listeners[0].Backends) != 50 {
			b.Fatalf("%d listeners with %d backends", len(p.Listeners), len(p.Listeners[0].Backends))
		}
	}
}
