// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const namespace = "ovnkube_slb"

// collector exports the state of the sessions on each scrape; docs/metrics.md describes the metrics for users. The
// names are MetalLB's.
type collector struct{ states func() []speaker.State }

var _ prometheus.Collector = (*collector)(nil)

type descs struct{ session, prefixes, updates, bfd *prometheus.Desc }

func describe() descs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	}
	return descs{
		session:  desc("bgp_session_up", "Whether the session with a BGPPeer is established (1) or not (0).", "peer"),
		prefixes: desc("bgp_announced_prefixes", "Prefixes that are advertised to a BGPPeer, by family.", "peer", "family"),
		updates: desc("bgp_updates_total", "Routes that were advertised to a BGPPeer and withdrawn; each session begins "+
			"with all of them.", "peer"),
		bfd: desc("bfd_session_up", "Whether the BFD session with a BGPPeer is up (1) or not (0).", "peer"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	d := describe()
	for _, desc := range []*prometheus.Desc{d.session, d.prefixes, d.updates, d.bfd} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	d := describe()
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, s := range c.states() {
		send(d.session, flag(s.Phase == speaker.Established), s.Peer)
		send(d.prefixes, float64(s.IPv4), s.Peer, world.IPv4.String())
		send(d.prefixes, float64(s.IPv6), s.Peer, world.IPv6.String())
		out <- prometheus.MustNewConstMetric(d.updates, prometheus.CounterValue, float64(s.Updates), s.Peer)
		if s.BFD != "" {
			send(d.bfd, flag(s.BFD == string(v1alpha1.BFDUp)), s.Peer)
		}
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
