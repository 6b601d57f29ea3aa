// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const namespace = "ovnkube_slb"

// metrics are the controller's metrics. docs/metrics.md lists them for users.
type metrics struct {
	lastPass     *passMetrics
	waited       prometheus.Histogram
	writes       *prometheus.CounterVec
	dataplane    *prometheus.CounterVec
	transactions *prometheus.CounterVec
	passes       prometheus.Histogram
	enabled      *prometheus.GaugeVec
	modeInvalid  prometheus.Gauge
	ignored      *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		lastPass: newPassMetrics(),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "allocation_duration_seconds",
			Help: "Time from the first observation of a Service without an address until its address was written to the " +
				"API server.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16)}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "status_writes_total",
			Help: "Status writes sent to the API server, by kind and result (ok, conflict, gone, refused by a provider of " +
				"addresses, error)."},
			[]string{"kind", "result"}),
		dataplane: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "ovn_service_changes_total",
			Help: "Service changes applied to OVN, by result (ok, error)."}, []string{"result"}),
		transactions: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "ovn_transactions_total",
			Help: "Transactions sent to the northbound database, by result (ok, error)."}, []string{"result"}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "pass_duration_seconds",
			Help: "Duration of a full pass over all Services.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12)}),
		enabled: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "dataplane_enabled",
			Help: "Whether the mode in effect enables a dataplane (layer2, bgp): 1 or 0."},
			[]string{"dataplane"}),
		modeInvalid: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "mode_refused",
			Help: "Whether the annotation slb.k8s.ovn.org/mode has an invalid value, so that the previous mode stays in " +
				"effect: 1 or 0."}),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "ignored_conflict_reports_total",
			Help: "Address conflict reports of guards that were ignored, by reason (not_asked, not_gateway, wrong_probe)."},
			[]string{"reason"}),
	}
	if r == nil {
		return m, nil
	}
	for _, reason := range []string{decide.IgnoredNotAsked, decide.IgnoredNotGateway, decide.IgnoredWrongProbe} {
		m.ignored.WithLabelValues(reason) // rate() misses the first event of a counter that did not exist before
	}
	for _, c := range []prometheus.Collector{
		m.lastPass, m.waited, m.writes, m.dataplane, m.transactions, m.passes, m.enabled, m.modeInvalid, m.ignored,
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// registerUnreadKinds registers the metric of the kinds that a controller can't read, unless r is nil.
func registerUnreadKinds(r prometheus.Registerer, c *Controller) error {
	if r == nil {
		return nil
	}
	return kube.RegisterUnreadKinds(r, func() map[string]string {
		unread := c.watch.UnreadKinds()
		maps.Copy(unread, c.zones.UnreadKinds())
		return unread
	})
}

func (m *metrics) countWrite(kind string, err error) {
	m.writes.WithLabelValues(kind, kube.WriteResult(kind, err)).Inc()
}

func (m *metrics) countTransaction(err error) { m.transactions.WithLabelValues(outcome(err)).Inc() }

// observeAllocation records the time since a Service was first seen without an address.
func (m *metrics) observeAllocation(since time.Time) {
	if !since.IsZero() {
		m.waited.Observe(time.Since(since).Seconds())
	}
}

func (m *metrics) observePass(v *report.Builder, services map[world.Key]*status.Service, took time.Duration) {
	m.passes.Observe(took.Seconds())
	m.lastPass.set(v, services)
	s := &v.World.Cluster.ModeSetting
	m.enabled.WithLabelValues("layer2").Set(flag(s.Mode.Layer2()))
	m.enabled.WithLabelValues("bgp").Set(flag(s.Mode.BGP()))
	m.modeInvalid.Set(flag(s.Refused != ""))
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
