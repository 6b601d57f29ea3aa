// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A Service that exceeds a limit by itself, counted with all its addresses, ports, endpoints and source ranges.
func TestServiceBeyondItsLimit(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	unready := worldtest.Wide(10, 5, 5)
	for i := range unready.Slices[0].Endpoints {
		unready.Slices[0].Endpoints[i].Ready = false
	}
	ranges := func(n, step int) *world.Service {
		s, list := worldtest.Wide(1, 1, 1), make([]netip.Prefix, n)
		for i := range list {
			list[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i * step >> 8), byte(i * step)}), 24)
		}
		s.SourceRanges = convert.MergeRanges(list)
		return s
	}
	listed := func(n int) *world.Service {
		s := ranges(1, 1)
		s.ListedRanges = n
		return s
	}
	slicePorts := func(slices, ports, endpoints int) *world.Service {
		s := worldtest.Wide(1, endpoints, 1)
		wide := *s.Slices[0]
		wide.Ports = append(wide.Ports, worldtest.Wide(ports, 0, 1).Ports[1:]...)
		for range slices - 1 {
			s.Slices = append(s.Slices, &wide)
		}
		return s
	}
	for _, test := range []struct {
		what  string
		s     *world.Service
		vips  []plan.VIP
		limit int
		want  plan.Limit
	}{
		{"at the limit", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}}, 50, plan.NoLimit},
		{"beyond it", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}}, 49, plan.BackendsOfService},
		{"two addresses", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}, {Addr: two}}, 99, plan.BackendsOfService},
		{"endpoints that are not ready", unready, []plan.VIP{{Addr: one}}, 49, plan.BackendsOfService},
		{"ports without endpoints", worldtest.Wide(10, 0, 1), []plan.VIP{{Addr: one}}, 9, plan.BackendsOfService},
		{"no limit", worldtest.Wide(10, 5, 5), []plan.VIP{{Addr: one}}, 0, plan.NoLimit},
		{"no address", worldtest.Wide(10, 5, 5), nil, 1, plan.NoLimit},
		{"most source ranges", ranges(plan.MaxSourceRanges, 2), []plan.VIP{{Addr: one}}, 0, plan.NoLimit},
		{"more source ranges", ranges(plan.MaxSourceRanges+1, 2), []plan.VIP{{Addr: one}}, 0, plan.RangesOfService},
		{"adjacent source ranges", ranges(2*plan.MaxSourceRanges, 1), []plan.VIP{{Addr: one}}, 0, plan.NoLimit},
		{"most listed ranges", listed(world.MaxListedRanges), []plan.VIP{{Addr: one}}, 0, plan.NoLimit},
		{"more listed ranges", listed(world.MaxListedRanges + 1), []plan.VIP{{Addr: one}}, 0, plan.RangesOfService},
		{"most ports in slices", slicePorts(101, 1000, 1), []plan.VIP{{Addr: one}}, 0, plan.SlicePortsOfService},
		{"fewer", slicePorts(100, 1000, 1), []plan.VIP{{Addr: one}}, 0, plan.NoLimit},
		{"without endpoints", slicePorts(101, 1000, 0), []plan.VIP{{Addr: one}}, 0, plan.NoLimit},
	} {
		demands := []plan.ServiceDemand{{Key: test.s.Key, Demand: plan.DemandOf(test.s, test.vips)}}
		_, excess := plan.NewBudget(world.Limits{ServiceBackends: test.limit}, demands)
		if got := excess[test.s.Key].Limit; got != test.want {
			t.Errorf("%s: %+v: limit %d, want %d", test.what, demands[0].Demand, got, test.want)
		}
	}
}

// The cost of detecting that a Service is too wide must not grow with its width: with the 1,000 million backends of
// this one it would take minutes.
func TestDemandIsFoundQuickly(t *testing.T) {
	s := worldtest.Wide(10_000, 100, 1)
	vips := make([]plan.VIP, 1000)
	for i := range vips {
		vips[i].Addr = netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})
	}
	if d := plan.DemandOf(s, vips); d.Backends != 1_000_000_000 {
		t.Errorf("%+v", d)
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
	p := plan.For(s, vips, plan.NewReachability(&world.Snapshot{}))
	if len(p.Listeners) != 10_000 || len(p.Listeners[0].Backends) != 1 {
		t.Errorf("%d listeners", len(p.Listeners))
	}
}
