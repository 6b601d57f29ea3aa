// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// The kinds of faults in metrics.
const (
	kindUplink        = "uplink"
	kindOVNController = "ovn_controller"
	kindVswitchd      = "ovs_vswitchd"
)

// metrics count what the guard observes; docs/metrics.md documents them for users.
type metrics struct {
	faults          *prometheus.CounterVec
	active          *prometheus.GaugeVec
	probes, answers prometheus.Counter
	announcements   prometheus.Counter
	pauses          prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	const namespace = "ovnkube_slb_guard"
	m := &metrics{
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "faults_total",
			Help: "Faults of the gateway that were detected, by kind (uplink, ovn_controller, ovs_vswitchd)."},
			[]string{"kind"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "active_faults",
			Help: "Active faults of the gateway, by kind (uplink, ovn_controller, ovs_vswitchd)."}, []string{"kind"}),
		probes: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "address_probes_total",
			Help: "ARP and ND probes sent for addresses that are to be announced, or are announced."}),
		answers: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "address_probe_answers_total",
			Help: "Replies to such probes, and claims of such addresses: another host has the address."}),
		announcements: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "announcements_total",
			Help: "Announcements of shards that the node's chassis has just claimed: up to three per claim and link."}),
		pauses: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "address_probe_pauses_total",
			Help: "Pauses of 100 ms in reading ARP and ND from a link that carries over 2,000 such frames per second: " +
				"conflicts may be found late."}),
	}
	for _, kind := range []string{kindUplink, kindOVNController, kindVswitchd} {
		m.faults.WithLabelValues(kind)
		m.active.WithLabelValues(kind)
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.faults, m.active, m.probes, m.answers, m.announcements, m.pauses} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// update updates the metrics with the previous and the current faults by network.
func (m *metrics) update(before, now map[string]fault) {
	count := map[string]float64{kindUplink: 0, kindOVNController: 0, kindVswitchd: 0}
	for network, f := range now {
		count[f.kind]++
		if before[network].kind != f.kind {
			m.faults.WithLabelValues(f.kind).Inc()
		}
	}
	for kind, n := range count {
		m.active.WithLabelValues(kind).Set(n)
	}
}
