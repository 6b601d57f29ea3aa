// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/errors"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const namespace = "ovnkube_slb"

// metrics tell how the controller fares.
type metrics struct {
	services  *prometheus.GaugeVec
	pools     *prometheus.GaugeVec
	writes    *prometheus.CounterVec
	dataplane *prometheus.CounterVec
	passes    prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		services: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "services",
			Help: "Services of type LoadBalancer that are served here, by the reason of their condition Allocated."},
			[]string{"reason", "allocated"}),
		pools: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "pool_addresses",
			Help: "Addresses of a pool, by family and state (assigned, available, resting)."}, []string{"pool", "family", "state"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "status_writes_total",
			Help: "Status writes sent to the API server, by kind and result (ok, conflict, error)."}, []string{"kind", "result"}),
		dataplane: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "ovn_service_changes_total",
			Help: "Services handed to OVN, by result (ok, error)."}, []string{"result"}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "pass_duration_seconds",
			Help: "Time to decide about all Services once.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12)}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.services, m.pools, m.writes, m.dataplane, m.passes} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) wrote(kind string, err error) {
	result := "ok"
	if errors.IsConflict(err) {
		result = "conflict"
	} else if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(kind, result).Inc()
}

func (m *metrics) decided(v *verdicts, services map[world.Key]*kube.ServiceStatus, took time.Duration) {
	m.passes.Observe(took.Seconds())
	counts := map[[2]string]int{}
	for _, s := range services {
		if !s.Release {
			counts[[2]string{s.Allocated.Reason, string(s.Allocated.Status)}]++
		}
	}
	m.services.Reset()
	for labels, n := range counts {
		m.services.WithLabelValues(labels[0], labels[1]).Set(float64(n))
	}
	m.pools.Reset()
	for pool, use := range v.allocation.Pools {
		m.pools.WithLabelValues(pool, "IPv4", "assigned").Set(float64(use.Assigned4))
		m.pools.WithLabelValues(pool, "IPv4", "available").Set(float64(use.Available4))
		m.pools.WithLabelValues(pool, "IPv4", "resting").Set(float64(use.Resting4))
		m.pools.WithLabelValues(pool, "IPv6", "assigned").Set(float64(use.Assigned6))
		m.pools.WithLabelValues(pool, "IPv6", "available").Set(float64(use.Available6))
		m.pools.WithLabelValues(pool, "IPv6", "resting").Set(float64(use.Resting6))
	}
}
