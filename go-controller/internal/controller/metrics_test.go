// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func measured(t *testing.T) (*metrics, *prometheus.Registry) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	m, err := newMetrics(r)
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// pass computes a decision for a snapshot and records its metrics.
func (m *metrics) pass(w *world.Snapshot) {
	var fresh decide.State
	d := fresh.Decide(w)
	known := report.Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{}}
	for key, p := range d.Plans {
		known.Programmed[key] = loop.Result{Key: key, Plan: p}
	}
	v := report.NewBuilder(d, known)
	m.observePass(v, v.Services(&report.Cache{}), time.Millisecond)
}

func TestMetricsReportOnePass(t *testing.T) {
	m, r := measured(t)
	if n, err := testutil.GatherAndCount(r, "ovnkube_slb_services", "ovnkube_slb_pool_capacity_addresses"); n != 0 ||
		err != nil {
		t.Errorf("before the first pass: %d series, %v", n, err)
	}
	w := worldtest.Small(2, worldtest.Service(web, 1), worldtest.Service(world.Key{Namespace: "shop", Name: "b"}, 2),
		worldtest.Service(world.Key{Namespace: "shop", Name: "c"}, 3))
	w.Pools = append(w.Pools, &world.Pool{Name: "six", Reservations: []world.Reservation{
		{Service: world.Key{Namespace: "shop", Name: "later"}, Addrs: []netip.Addr{netip.MustParseAddr("fd00::9")}}},
		Ranges: []netipx.IPRange{netipx.MustParseIPRange("fd00::1-fd00::9")}})
	m.pass(w)
	want := `
# HELP ovnkube_slb_pool_assigned_addresses Addresses of the pool that are allocated to Services, by family.
# TYPE ovnkube_slb_pool_assigned_addresses gauge
ovnkube_slb_pool_assigned_addresses{family="IPv4",pool="lan"} 2
ovnkube_slb_pool_assigned_addresses{family="IPv6",pool="six"} 0
# HELP ovnkube_slb_pool_available_addresses Addresses of the pool that are available for allocation, by family.
# TYPE ovnkube_slb_pool_available_addresses gauge
ovnkube_slb_pool_available_addresses{family="IPv4",pool="lan"} 0
ovnkube_slb_pool_available_addresses{family="IPv6",pool="six"} 8
# HELP ovnkube_slb_pool_capacity_addresses Allocatable addresses of the pool, by family.
# TYPE ovnkube_slb_pool_capacity_addresses gauge
ovnkube_slb_pool_capacity_addresses{family="IPv4",pool="lan"} 2
ovnkube_slb_pool_capacity_addresses{family="IPv6",pool="six"} 9
# HELP ovnkube_slb_pool_cooling_down_addresses Addresses of the pool that are in cooldown (spec.reuseDelay), by family.
# TYPE ovnkube_slb_pool_cooling_down_addresses gauge
ovnkube_slb_pool_cooling_down_addresses{family="IPv4",pool="lan"} 0
ovnkube_slb_pool_cooling_down_addresses{family="IPv6",pool="six"} 0
# HELP ovnkube_slb_pool_reserved_addresses Addresses of the pool that are reserved (spec.reservations) and not in use, by family.
# TYPE ovnkube_slb_pool_reserved_addresses gauge
ovnkube_slb_pool_reserved_addresses{family="IPv4",pool="lan"} 0
ovnkube_slb_pool_reserved_addresses{family="IPv6",pool="six"} 1
# HELP ovnkube_slb_services Services of type LoadBalancer that are served here, by status and reason of their condition Allocated (Unknown, NotWritten: not written for a minute).
# TYPE ovnkube_slb_services gauge
ovnkube_slb_services{allocated="False",reason="PoolExhausted"} 1
ovnkube_slb_services{allocated="True",reason="Allocated"} 2
`
	names := []string{"ovnkube_slb_services", "ovnkube_slb_pool_capacity_addresses", "ovnkube_slb_pool_assigned_addresses",
		"ovnkube_slb_pool_available_addresses",
		"ovnkube_slb_pool_cooling_down_addresses", "ovnkube_slb_pool_reserved_addresses"}
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}

	gateways := `
# HELP ovnkube_slb_announced_services Services of type LoadBalancer that are served here, by status and reason of their condition Announced (Unknown, NotWritten: not written for a minute).
# TYPE ovnkube_slb_announced_services gauge
ovnkube_slb_announced_services{announced="False",reason="NoActiveGateway"} 2
ovnkube_slb_announced_services{announced="False",reason="NotAllocated"} 1
# HELP ovnkube_slb_l2domain_shards Shards of the L2Domain that have addresses.
# TYPE ovnkube_slb_l2domain_shards gauge
ovnkube_slb_l2domain_shards{l2domain="lan"} 1
# HELP ovnkube_slb_l2domain_unclaimed_shards Shards of the L2Domain that have addresses and that no gateway has claimed.
# TYPE ovnkube_slb_l2domain_unclaimed_shards gauge
ovnkube_slb_l2domain_unclaimed_shards{l2domain="lan"} 1
# HELP ovnkube_slb_l2domain_usable_gateways Gateways of the L2Domain that are neither faulty nor draining, on nodes that Kubernetes can reach.
# TYPE ovnkube_slb_l2domain_usable_gateways gauge
ovnkube_slb_l2domain_usable_gateways{l2domain="lan"} %d
# HELP ovnkube_slb_ovn_database_unreachable Whether the controller has had no connection to OVN's databases for a few seconds: 1 or 0.
# TYPE ovnkube_slb_ovn_database_unreachable gauge
ovnkube_slb_ovn_database_unreachable 0
# HELP ovnkube_slb_silent_agents Nodes whose agent for layer 2 with interconnect no longer reports.
# TYPE ovnkube_slb_silent_agents gauge
ovnkube_slb_silent_agents 0
`
	counted := []string{"ovnkube_slb_announced_services", "ovnkube_slb_l2domain_shards",
		"ovnkube_slb_l2domain_unclaimed_shards", "ovnkube_slb_l2domain_usable_gateways",
		"ovnkube_slb_ovn_database_unreachable", "ovnkube_slb_silent_agents"}
	if err := testutil.GatherAndCompare(r, strings.NewReader(fmt.Sprintf(gateways, 3)), counted...); err != nil {
		t.Error(err)
	}
	unreachable := *w.Nodes[0]
	unreachable.Unreachable = true
	// Left from a time with interconnect: agents do not report in this mode.
	unreachable.Agent = &world.ZoneAgent{Silent: true}
	w.Nodes[0] = &unreachable
	m.pass(w)
	if err := testutil.GatherAndCompare(r, strings.NewReader(fmt.Sprintf(gateways, 2)), counted...); err != nil {
		t.Error(err)
	}

	// Deleted pools and reasons that no longer occur have no series.
	w.Pools, w.Services = w.Pools[:1], nil
	m.pass(w)
	if n, err := testutil.GatherAndCount(r, names...); n != 5 || err != nil {
		t.Errorf("%d series of one pool and no Service (%v), want 4", n, err)
	}
}

func TestMetricNamesFollowConventions(t *testing.T) {
	m, r := measured(t)
	m.pass(worldtest.Small(2, worldtest.Service(web, 1)))
	m.countWrite("Service", nil)
	m.countWrite("Service", errors.New("no such luck"))
	m.countTransaction(nil)
	m.dataplane.WithLabelValues("ok").Inc()
	m.observeAllocation(time.Now())
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestUnobservedWaitIsNotCounted(t *testing.T) {
	m, r := measured(t)
	m.observeAllocation(time.Time{})
	m.observeAllocation(time.Now().Add(-3 * time.Second))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "ovnkube_slb_allocation_duration_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 1 || h.GetSampleSum() < 3 || h.GetSampleSum() > 4 {
			t.Errorf("%d waits of %f s, want one of 3 s", h.GetSampleCount(), h.GetSampleSum())
		}
	}
}
