// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const namespace = "ovnkube_slb"

// collector exports the state of the sessions on each scrape; docs/metrics.md describes the metrics for users. The
// names are MetalLB's, with another prefix, also where Prometheus recommends others.
type collector struct{ states func() []speaker.State }

var _ prometheus.Collector = (*collector)(nil)

// metric is one metric of a session. The value is absent if it returns false.
type metric struct {
	*prometheus.Desc
	kind  prometheus.ValueType
	value func(s *speaker.State) (float64, bool)
}

func newMetric(name, help string, kind prometheus.ValueType, value func(s *speaker.State) (float64, bool)) metric {
	return metric{prometheus.NewDesc(namespace+"_"+name, help, []string{"peer", "bgppeer"}, nil), kind, value}
}

func metrics() []metric {
	gauge := func(name, help string, value func(s *speaker.State) int) metric {
		return newMetric(name, help, prometheus.GaugeValue, func(s *speaker.State) (float64, bool) {
			return float64(value(s)), true
		})
	}
	counter := func(name, help string, value func(s *speaker.State) uint64) metric {
		return newMetric(name, help, prometheus.CounterValue, func(s *speaker.State) (float64, bool) {
			return float64(value(s)), true
		})
	}
	return []metric{
		gauge("bgp_session_up", "Whether the session with a BGPPeer is established (1) or not (0). It is 0 while sessions "+
			"do not last.",
			func(s *speaker.State) int { return flag(s.Phase == speaker.Established && !s.Damped) }),
		gauge("bgp_announced_prefixes_total", "Prefixes that are advertised to a BGPPeer.",
			func(s *speaker.State) int { return s.IPv4 + s.IPv6 }),
		gauge("bgp_pending_prefixes_total", "Prefixes to advertise to a BGPPeer that are not advertised yet.",
			func(s *speaker.State) int { return s.Pending }),
		counter("bgp_updates_total", "Routes that were advertised to a BGPPeer and withdrawn; each session begins with all "+
			"of them.", func(s *speaker.State) uint64 { return s.Updates }),
		counter("bgp_notifications_sent", "NOTIFICATIONs that were sent to a BGPPeer.",
			func(s *speaker.State) uint64 { return s.NotificationsSent }),
		counter("bgp_notifications_received", "NOTIFICATIONs that were received from a BGPPeer.",
			func(s *speaker.State) uint64 { return s.NotificationsReceived }),
		newMetric("bfd_session_up", "Whether the BFD session with a BGPPeer is up (1) or not (0).", prometheus.GaugeValue,
			func(s *speaker.State) (float64, bool) {
				return float64(flag(s.BFD == string(v1alpha1.BFDUp))), s.BFD != ""
			}),
		newMetric("bfd_session_down_events", "How often the BFD session with a BGPPeer went down, except because of an "+
			"administrator.", prometheus.CounterValue,
			func(s *speaker.State) (float64, bool) { return float64(s.BFDFailures), s.BFD != "" }),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics() {
		out <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	all := metrics()
	for _, s := range c.states() {
		address := s.Interface
		if s.Addr.IsValid() {
			address = s.Addr.String()
		}
		for _, m := range all {
			if value, ok := m.value(&s); ok {
				out <- prometheus.MustNewConstMetric(m.Desc, m.kind, value, address, s.Peer)
			}
		}
	}
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}
