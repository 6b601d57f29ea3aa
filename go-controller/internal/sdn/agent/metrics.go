// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Kernel operations in metrics.
const (
	operationRead   = "read"
	operationAdd    = "add"
	operationRemove = "remove"
)

// metrics report what the agent holds; docs/metrics.md documents them for users.
type metrics struct {
	wanted, held prometheus.Gauge
	errors       *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	const namespace = "ovnkube_slb_sdn"
	m := &metrics{
		wanted: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "wanted_addresses",
			Help: "Addresses that the node is to hold."}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "held_addresses",
			Help: "Addresses of ours that the node's kernel has."}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "netlink_errors_total",
			Help: "Requests to the kernel that failed, by operation (read, add, remove)."}, []string{"operation"}),
	}
	for _, operation := range []string{operationRead, operationAdd, operationRemove} {
		m.errors.WithLabelValues(operation)
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.wanted, m.held, m.errors} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// failed counts a failed request to the kernel.
func (m *metrics) failed(operation string) { m.errors.WithLabelValues(operation).Inc() }
