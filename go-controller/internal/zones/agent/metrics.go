// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
)

// metrics are the metrics of an agent.
type metrics struct{ transactions *prometheus.CounterVec }

// newMetrics returns metrics registered with r unless r is nil.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "ovnkube_slb", Subsystem: "zone", Name: "nb_transactions_total",
		Help: "Transactions sent to the northbound database of the node's zone, by result (ok, error).",
	}, []string{"result"})}
	for _, result := range []string{"ok", "error"} {
		m.transactions.WithLabelValues(result)
	}
	if r == nil {
		return m, nil
	}
	if err := r.Register(m.transactions); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// unreadKinds returns the kinds that have been unread for two minutes, by resource, and why.
func (a *Agent) unreadKinds() map[string]string { return kube.UnreadKinds(a.informers) }

func (m *metrics) transacted(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.transactions.WithLabelValues(result).Inc()
}
