// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world/worldtest"
)

// A Service is planned as a whole or not at all.
func TestPlanBeyondTheLimitHasNoListeners(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	unready := worldtest.Wide(10, 5, 5)
	for i := range unready.Slices[0].Endpoints {
		unready.Slices[0].Endpoints[i].Ready = false
	}
	for _, test := range []struct {
		what             string
		s                *world.Service
		vips             []plan.VIP
		limit, want, has int // want: BackendsOverLimit, has: listeners
	}{
		{"at the limit", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}}, 50, 0, 10},
		{"beyond it", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}}, 49, 50, 0},
		{"two addresses", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}, {Addr: two}}, 99, 100, 0},
		{"endpoints that are not ready", unready, []plan.VIP{{Addr: one}}, 49, 50, 0},
		{"ports without endpoints", worldtest.Wide(10, 0, 1), []plan.VIP{{Addr: one}}, 9, 10, 0},
		{"no limit", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}}, 0, 0, 10},
	} {
		w := &world.Snapshot{Cluster: world.Cluster{MaxBackends: test.limit}}
		p := plan.For(test.s, test.vips, plan.NewReachability(w))
		if p.BackendsOverLimit != test.want || len(p.Listeners) != test.has || len(p.VIPs) != len(test.vips) {
			t.Errorf("%s: %d backends beyond the limit, %d listeners; want %d and %d", test.what, p.BackendsOverLimit,
				len(p.Listeners), test.want, test.has)
		}
	}
}

// The cost of detecting that a Service is too wide must not grow with its width: with the 1,000 million backends of
// this one it would take minutes.
func TestPlanBeyondTheLimitIsFoundQuickly(t *testing.T) {
	s := worldtest.Wide(10_000, 100, 1)
	vips := make([]plan.VIP, 1000)
	for i := range vips {
		vips[i].Addr = netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})
	}
	p := plan.For(s, vips, plan.NewReachability(&world.Snapshot{Cluster: world.Cluster{MaxBackends: 100_000}}))
	if p.BackendsOverLimit != 1_000_000_000 {
		t.Errorf("%d backends", p.BackendsOverLimit)
	}
}

// Nor must the cost of a plan grow with ports times EndpointSlices, which users may create: to look for each port of
// this Service in each of its slices takes half a minute.
func TestPlanOfManySlicesIsComputedQuickly(t *testing.T) {
	s := worldtest.Wide(10_000, 1, 1)
	for i := range 20_000 {
		slice := &world.Slice{Family: world.IPv4, Ports: s.Ports[i%len(s.Ports):][:1]}
		if i >= len(s.Ports) {
			slice.Endpoints = s.Slices[0].Endpoints
		}
		s.Slices = append(s.Slices, slice)
	}
	vips := []plan.VIP{{Addr: netip.MustParseAddr("192.0.2.1")}}
	p := plan.For(s, vips, plan.NewReachability(&world.Snapshot{Cluster: world.Cluster{MaxBackends: 100_000}}))
	if len(p.Listeners) != 10_000 || len(p.Listeners[0].Backends) != 1 {
		t.Errorf("%d listeners", len(p.Listeners))
	}
}
