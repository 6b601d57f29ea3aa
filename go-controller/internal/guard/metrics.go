// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// faultKinds returns the kinds of faults that a guard reports.
func faultKinds() []world.FaultKind {
	return []world.FaultKind{world.FaultUplink, world.FaultOVNController, world.FaultVswitchd}
}

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
			Help: "Pauses of 100 ms in reading ARP and ND from a link that carries over 2,000 such frames per second, and " +
				"probes before which such frames were lost: conflicts may be found late."}),
	}
	for _, kind := range faultKinds() {
		m.faults.WithLabelValues(string(kind))
		m.active.WithLabelValues(string(kind))
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
func (m *metrics) update(before, now map[string]world.Fault) {
	count := map[world.FaultKind]float64{}
	for network, f := range now {
		count[f.Kind]++
		if before[network].Kind != f.Kind {
			m.faults.WithLabelValues(string(f.Kind)).Inc()
		}
	}
	for _, kind := range faultKinds() {
		m.active.WithLabelValues(string(kind)).Set(count[kind])
	}
}
