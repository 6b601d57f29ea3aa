// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// poolMetrics exports the results of the last pass. It keeps no series: objects that are not in that pass, such as a
// deleted pool, are not exported, and a scrape sees exactly one pass.
type poolMetrics struct {
	services, capacity, assigned, available, cooling *prometheus.Desc

	last atomic.Pointer[poolSnapshot]
}

// poolSnapshot contains the counts of one pass.
type poolSnapshot struct {
	pools map[string]ipam.PoolUsage
	// services are the numbers of Services by status and reason of their condition Allocated.
	services map[allocatedAs]int
}

type allocatedAs struct{ status, reason string }

var _ prometheus.Collector = (*poolMetrics)(nil)

func newPoolMetrics() *poolMetrics {
	pool := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "pool", name), help, []string{"pool", "family"}, nil)
	}
	return &poolMetrics{
		services: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "services"),
			"Services of type LoadBalancer that are served here, by status and reason of their condition Allocated.",
			[]string{"allocated", "reason"}, nil),
		capacity:  pool("capacity_addresses", "Allocatable addresses of the pool, by family."),
		assigned:  pool("assigned_addresses", "Addresses of the pool that are allocated to Services, by family."),
		available: pool("available_addresses", "Addresses of the pool that are available for allocation, by family."),
		cooling:   pool("cooling_down_addresses", "Addresses of the pool that are in cooldown (spec.reuseDelay), by family."),
	}
}

func (s *poolMetrics) set(pools map[string]ipam.PoolUsage, services map[world.Key]*kube.ServiceStatus) {
	// The pass continues to modify its own map.
	next := &poolSnapshot{pools: maps.Clone(pools), services: map[allocatedAs]int{}}
	for _, status := range services {
		if !status.Release {
			next.services[allocatedAs{string(status.Allocated.Status), status.Allocated.Reason}]++
		}
	}
	s.last.Store(next)
}

// Describe implements prometheus.Collector.
func (s *poolMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.services, s.capacity, s.assigned, s.available, s.cooling} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (s *poolMetrics) Collect(metrics chan<- prometheus.Metric) {
	last := s.last.Load()
	if last == nil {
		return
	}
	send := func(d *prometheus.Desc, n int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for as, n := range last.services {
		send(s.services, int64(n), as.status, as.reason)
	}
	for pool, use := range last.pools {
		for _, f := range []struct {
			family                                 world.Family
			capacity, assigned, available, cooling int64
		}{
			{world.IPv4, use.Capacity4, use.Assigned4, use.Available4, use.Cooldown4},
			{world.IPv6, use.Capacity6, use.Assigned6, use.Available6, use.Cooldown6},
		} {
			if f.capacity == 0 && f.assigned == 0 {
				continue // the pool has no addresses of this family
			}
			send(s.capacity, f.capacity, pool, f.family.String())
			send(s.assigned, f.assigned, pool, f.family.String())
			send(s.available, f.available, pool, f.family.String())
			send(s.cooling, f.cooling, pool, f.family.String())
		}
	}
}
