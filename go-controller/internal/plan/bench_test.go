// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world/worldtest"
)

// Plans of 10,000 Services with 20 endpoints each.
func BenchmarkPlan(b *testing.B) {
	w := worldtest.Large(10_000, 20)
	reach := plan.ReachOf(w)
	vips := []plan.VIP{{Addr: netip.MustParseAddr("10.0.0.1")}}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range w.Services {
			if p := plan.For(s, vips, reach); len(p.Listeners[0].Backends) != 20 {
				b.Fatalf("%s has %d backends", s.Key, len(p.Listeners[0].Backends))
			}
		}
	}
}
