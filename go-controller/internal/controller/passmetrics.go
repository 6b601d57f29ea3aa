// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// passMetrics exports the results of the last pass. It keeps no series: objects that are not in that pass, such as a
// deleted pool, are not exported, and a scrape sees exactly one pass.
type passMetrics struct {
	services, announced                     *prometheus.Desc
	capacity, assigned, available, cooling  *prometheus.Desc
	reserved                                *prometheus.Desc
	usableGateways, shards, unclaimedShards *prometheus.Desc
	silentAgents, databaseUnreachable       *prometheus.Desc
	sessions                                *prometheus.Desc

	last atomic.Pointer[passSnapshot]
	// unwritten returns the statuses that have waited to be written for too long. The counts are of what was decided:
	// without these, they would be those of a cluster that others do not see.
	unwritten func() []*status.Service
}

// passSnapshot contains the counts of one pass.
type passSnapshot struct {
	pools map[string]ipam.PoolUsage
	// services and announced are the numbers of Services by status and reason of their conditions.
	services, announced map[verdictLabels]int
	domains             map[string]report.GatewayCounts
	sessions            map[string]report.SessionCounts
	silentAgents        int
	databaseUnreachable bool
}

type verdictLabels struct{ status, reason string }

var _ prometheus.Collector = (*passMetrics)(nil)

func newPassMetrics() *passMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &passMetrics{
		unwritten: func() []*status.Service { return nil },
		services: desc("services",
			"Services of type LoadBalancer that are served here, by status and reason of their condition Allocated "+
				"(Unknown, NotWritten: not written for a minute).",
			"allocated", "reason"),
		announced: desc("announced_services",
			"Services of type LoadBalancer that are served here, by status and reason of their condition Announced "+
				"(Unknown, NotWritten: not written for a minute).",
			"announced", "reason"),
		capacity: desc("pool_capacity_addresses", "Allocatable addresses of the pool, by family.", "pool", "family"),
		assigned: desc("pool_assigned_addresses", "Addresses of the pool that are allocated to Services, by family.",
			"pool", "family"),
		available: desc("pool_available_addresses", "Addresses of the pool that are available for allocation, by family.",
			"pool", "family"),
		cooling: desc("pool_cooling_down_addresses",
			"Addresses of the pool that are in cooldown (spec.reuseDelay), by family.", "pool", "family"),
		reserved: desc("pool_reserved_addresses",
			"Addresses of the pool that are reserved (spec.reservations) and not in use, by family.", "pool", "family"),
		usableGateways: desc("l2domain_usable_gateways",
			"Gateways of the L2Domain that are neither faulty nor draining, on nodes that Kubernetes can reach.", "l2domain"),
		shards: desc("l2domain_shards", "Shards of the L2Domain that have addresses.", "l2domain"),
		unclaimedShards: desc("l2domain_unclaimed_shards",
			"Shards of the L2Domain that have addresses and that no gateway has claimed.", "l2domain"),
		silentAgents: desc("silent_agents", "Nodes whose agent for layer 2 with interconnect no longer reports."),
		sessions: desc("bgppeer_sessions", "Sessions that nodes must have with the BGPPeer, by the state that the "+
			"controller knows (established, down, unknown).", "bgppeer", "state"),
		databaseUnreachable: desc("ovn_database_unreachable",
			"Whether the controller has had no connection to OVN's databases for a few seconds: 1 or 0."),
	}
}

func (m *passMetrics) set(v *report.Builder, services map[world.Key]*status.Service) {
	next := &passSnapshot{
		pools:    maps.Clone(v.Allocation.Pools), // the pass continues to modify its own map
		services: map[verdictLabels]int{}, announced: map[verdictLabels]int{}, domains: map[string]report.GatewayCounts{},
		databaseUnreachable: v.Unreachable != "", sessions: v.SessionCounts(),
	}
	for _, status := range services {
		if status.Release {
			continue
		}
		next.services[verdictLabels{string(status.Allocated.Status), status.Allocated.Reason}]++
		if a := status.Announced; a != nil {
			next.announced[verdictLabels{string(a.Status), a.Reason}]++
		}
	}
	for _, n := range v.World.Nodes {
		if v.Layout.Interconnect && n.Agent != nil && n.Agent.Silent { // in central mode, agents do not report
			next.silentAgents++
		}
	}
	for _, d := range v.Layout.Domains {
		next.domains[d.Spec.Name] = v.GatewayCounts(d)
	}
	m.last.Store(next)
}

// reasonNotWritten is the reason under which Services are counted whose status has not been written.
const reasonNotWritten = "NotWritten"

// written returns the numbers of Services by status and reason, with those of unwritten statuses as Unknown. A status
// that was amended after the pass is counted as in the pass, unless the pass has one like it.
func (s *passSnapshot) written(unwritten []*status.Service) (services, announced map[verdictLabels]int) {
	services, announced = maps.Clone(s.services), maps.Clone(s.announced)
	move := func(counts map[verdictLabels]int, v *status.Verdict) {
		if v == nil || counts[verdictLabels{string(v.Status), v.Reason}] == 0 {
			return
		}
		counts[verdictLabels{string(v.Status), v.Reason}]--
		counts[verdictLabels{string(metav1.ConditionUnknown), reasonNotWritten}]++
	}
	for _, u := range unwritten {
		move(services, &u.Allocated)
		move(announced, u.Announced)
	}
	unused := func(_ verdictLabels, n int) bool { return n == 0 }
	maps.DeleteFunc(services, unused)
	maps.DeleteFunc(announced, unused)
	return services, announced
}

// Describe implements prometheus.Collector.
func (m *passMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.services, m.announced, m.capacity, m.assigned, m.available, m.cooling,
		m.reserved, m.usableGateways, m.shards, m.unclaimedShards, m.silentAgents, m.databaseUnreachable, m.sessions} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (m *passMetrics) Collect(metrics chan<- prometheus.Metric) {
	last := m.last.Load()
	if last == nil {
		return
	}
	send := func(d *prometheus.Desc, n int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	services, announced := last.written(m.unwritten())
	for as, n := range services {
		send(m.services, int64(n), as.status, as.reason)
	}
	for as, n := range announced {
		send(m.announced, int64(n), as.status, as.reason)
	}
	for domain, n := range last.domains {
		send(m.usableGateways, int64(n.Usable), domain)
		send(m.shards, int64(n.Shards), domain)
		send(m.unclaimedShards, int64(n.Unclaimed), domain)
	}
	for peer, n := range last.sessions {
		send(m.sessions, int64(n.Established), peer, "established")
		send(m.sessions, int64(n.Down), peer, "down")
		send(m.sessions, int64(n.Unknown), peer, "unknown")
	}
	send(m.silentAgents, int64(last.silentAgents))
	send(m.databaseUnreachable, int64(flag(last.databaseUnreachable)))
	for pool, use := range last.pools {
		for _, f := range []struct {
			family                                           world.Family
			capacity, assigned, available, cooling, reserved int64
		}{
			{world.IPv4, use.Capacity4, use.Assigned4, use.Available4, use.Cooldown4, use.Reserved4},
			{world.IPv6, use.Capacity6, use.Assigned6, use.Available6, use.Cooldown6, use.Reserved6},
		} {
			if f.capacity == 0 && f.assigned == 0 {
				continue // the pool has no addresses of this family
			}
			send(m.assigned, f.assigned, pool, f.family.String())
			if use.External {
				continue // only the provider knows how many there are
			}
			send(m.capacity, f.capacity, pool, f.family.String())
			send(m.available, f.available, pool, f.family.String())
			send(m.cooling, f.cooling, pool, f.family.String())
			send(m.reserved, f.reserved, pool, f.family.String())
		}
	}
}
