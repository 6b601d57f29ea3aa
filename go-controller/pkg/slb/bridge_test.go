// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// onBrEx returns a small snapshot whose domain is on the bridge of OVN-Kubernetes' own gateway, in local gateway mode.
// Each node has a guard that has not reported a port yet.
func onBrEx(services ...*world.Service) *world.Snapshot {
	w := small(5, services...)
	w.Now = time.Unix(1000, 0)
	w.Bridges = map[string]world.Bridges{}
	for _, n := range w.Nodes {
		n.GatewayBridge, n.Localnets = "br-ex", map[string]world.Localnet{}
		w.Bridges[n.Chassis] = world.Bridges{"physnet": "br-ex"}
	}
	return w
}

// reportStale makes the guard of a node report OVN's port and stale flows that keep requests for some addresses from
// it.
func reportStale(n *world.Node, stale ...string) {
	is := world.Localnet{Bridge: "br-ex"}
	for _, a := range stale {
		is.Stale = append(is.Stale, netip.MustParseAddr(a))
	}
	n.Localnets = map[string]world.Localnet{plan.LocalnetPort("lan"): is}
}

// programmed returns the state of a dataplane that has applied the whole decision.
func programmed(d *decision) observed {
	k := observed{synced: true, configured: true, programmed: map[world.Key]loop.Result{}}
	for key, p := range d.plans {
		k.programmed[key] = loop.Result{Key: key, Plan: p}
	}
	return k
}

// status returns the status that a pass builds for Service web once OVN has applied everything and the first gateway
// carries the Service.
func status(m *state, w *world.Snapshot) *kube.ServiceStatus {
	d := m.decide(w)
	v := newStatusBuilder(d, programmed(d))
	for _, domain := range d.layout.Domains {
		for _, s := range domain.Shards {
			v.active[s.ID] = s.Gateways[0].Node
		}
	}
	var last statusCache
	return v.services(&last)[web]
}

// An address appears in a status only once OVN's port is on a bridge, because the flows that OVN-Kubernetes computes at
// that moment stay.
func TestStatusOmitsAddressesWithoutBridgePort(t *testing.T) {
	var m state
	s := service(web, 1)
	w := onBrEx(s)
	got := status(&m, w)
	if len(got.Addrs) != 0 || got.Allocated.Reason != v1alpha1.ReasonDomainNotReady ||
		!strings.Contains(got.Allocated.Message, "slb-lan-localnet") {
		t.Errorf("without ports: %v %v", got.Addrs, got.Allocated)
	}
	if d := m.decide(w); len(d.fabric.Domains[0].Residents) != 3 || len(d.plans) != 0 {
		t.Errorf("without ports: residents %v, plans %v", d.fabric.Domains[0].Residents, d.plans)
	}
	reportStale(w.Nodes[1])
	got = status(&m, w)
	if len(got.Addrs) != 1 || got.Allocated.Status != metav1.ConditionTrue ||
		got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("with one port: %v %v %v", got.Addrs, got.Allocated, got.Announced)
	}
	// An address in the status stays there.
	s.Assigned = got.Addrs
	w.Nodes[1].Localnets = map[string]world.Localnet{}
	if got = status(&m, w); len(got.Addrs) != 1 || got.Announced.Status != metav1.ConditionFalse {
		t.Errorf("once the port is gone: %v %v", got.Addrs, got.Announced)
	}
}

// An address whose flows OVN has in the wrong routers is not reported as announced.
func TestMisplacedFlowIsReported(t *testing.T) {
	var m state
	s := service(web, 1)
	w := onBrEx(s)
	for _, n := range w.Nodes {
		reportStale(n)
	}
	s.Assigned, s.Given = status(&m, w).Addrs, status(&m, w).Addrs
	w.Misplaced = map[netip.Addr]bool{netip.MustParseAddr("10.50.0.7"): true}
	if got := status(&m, w); got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("another's address: %v", got.Announced)
	}
	w.Misplaced = map[netip.Addr]bool{s.Assigned[0]: true}
	got := status(&m, w)
	if got.Announced.Status != metav1.ConditionFalse || got.Announced.Reason != v1alpha1.ReasonMisplacedFlow ||
		!strings.Contains(got.Announced.Message, s.Assigned[0].String()) {
		t.Errorf("misplaced: %v", got.Announced)
	}
	if !slices.Equal(got.Addrs, s.Assigned) {
		t.Errorf("addresses %v, want those that it had", got.Addrs)
	}
}

// While the bridge of the gateway keeps requests from OVN, Announced is False. The status is rewritten at growing
// intervals so that OVN-Kubernetes recomputes its flows.
func TestStatusIsRefreshedWhileBridgeFlowsAreStale(t *testing.T) {
	var m state
	s := service(web, 1)
	w := onBrEx(s)
	for _, n := range w.Nodes {
		reportStale(n)
	}
	s.Assigned, s.Given = status(&m, w).Addrs, status(&m, w).Addrs
	if got := status(&m, w); got.ListPorts || got.Announced.Status != metav1.ConditionTrue {
		t.Fatalf("at first: %v %v", got.ListPorts, got.Announced)
	}
	addr := s.Assigned[0].String()
	reportStale(w.Nodes[0], "10.50.0.7")
	if got := status(&m, w); got.ListPorts || got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("another's address: %v %v", got.ListPorts, got.Announced)
	}
	for _, n := range w.Nodes {
		reportStale(n, addr)
	}
	got := status(&m, w)
	if !got.ListPorts || got.Announced.Status != metav1.ConditionFalse ||
		got.Announced.Reason != v1alpha1.ReasonStaleFlow {
		t.Errorf("stale: %v %v", got.ListPorts, got.Announced)
	}
	if got = status(&m, w); !got.ListPorts {
		t.Error("before the status is seen, it is meant otherwise")
	}
	s.ListsPorts = true
	if got = status(&m, w); !got.ListPorts {
		t.Error("it was written again at once")
	}
	w.Now = w.Now.Add(firstRefresh)
	if got = status(&m, w); got.ListPorts {
		t.Error("it was not written again after a while")
	}
	s.ListsPorts = false
	w.Now = w.Now.Add(firstRefresh)
	if got = status(&m, w); got.ListPorts {
		t.Error("the second time it was not waited for longer")
	}
	for _, n := range w.Nodes {
		reportStale(n)
	}
	if got = status(&m, w); got.ListPorts || got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("at last: %v %v", got.ListPorts, got.Announced)
	}
}

// A gateway keeps working without its guard, but it is not known whether requests reach it.
func TestAnnouncedIsUnknownWithoutGuardOnBrEx(t *testing.T) {
	var m state
	s := service(web, 1)
	w := onBrEx(s)
	for _, n := range w.Nodes {
		reportStale(n)
	}
	s.Assigned = status(&m, w).Addrs
	w.Carriers = map[world.ShardID]world.Carrier{{Domain: "lan"}: {Active: "chassis-1", Settled: true,
		Order: []string{"chassis-1", "chassis-2", "chassis-3"}}}
	for _, n := range w.Nodes {
		n.Localnets = nil
	}
	got := status(&m, w)
	if len(got.Addrs) != 1 || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonNoGuard {
		t.Errorf("%v %v", got.Addrs, got.Announced)
	}
}

// A new address appears in a status only once OVN has it.
func TestStatusWaitsForOVN(t *testing.T) {
	for name, guarded := range map[string]bool{"guards run": true, "no guards": false} {
		t.Run(name, func(t *testing.T) {
			var m state
			s := service(web, 1)
			w := small(5, s)
			for _, n := range w.Nodes {
				n.Guarded = guarded
			}
			status := func(known observed) *kube.ServiceStatus {
				return newStatusBuilder(m.decide(w), known).services(&statusCache{})[web]
			}
			const waits, given = false, true
			expect := func(when string, known observed, want bool) {
				t.Helper()
				if got := status(known); (got != nil) != want || got != nil && len(got.Addrs) != 1 {
					t.Errorf("%s: %+v", when, got)
				}
			}
			expect("before the databases were read", observed{}, waits)
			expect("while it is asked for, or OVN is configured", observed{synced: true, configured: true}, waits)
			w.Now = w.Now.Add(silenceTime)
			expect("before OVN has it", observed{synced: true, configured: true}, waits)
			expect("without a connection to OVN", observed{synced: true, configured: true, lost: "no connection"}, given)
			expect("when no shard can be configured", observed{synced: true, topologyError: errors.New("no join port")}, given)
			refused := map[world.Key]loop.Result{web: {Key: web, Err: errors.New("no")}}
			expect("when OVN refuses it", observed{synced: true, configured: true, programmed: refused}, given)
			expect("when OVN has it", programmed(m.decide(w)), given)
			w.Cluster.Switch.Mode = world.BGPOnly
			expect("when no address goes to OVN", observed{}, given)
		})
	}
}

// Stale flows for addresses of other domains, or flows that a status rewrite cannot repair, are not faults of a
// gateway's bridge.
func TestBridgeFaultsCountRefreshableAddressesOfTheDomain(t *testing.T) {
	var m state
	far, external := service(world.Key{Namespace: "shop", Name: "far"}, 2),
		service(world.Key{Namespace: "shop", Name: "external"}, 3)
	far.Assigned = []netip.Addr{netip.MustParseAddr("203.0.113.5")}
	far.Given = far.Assigned
	external.ExternalIPs = []netip.Addr{netip.MustParseAddr("10.50.0.9")}
	w := onBrEx(far, external)
	for _, n := range w.Nodes {
		reportStale(n, "10.50.0.9", "203.0.113.5")
	}
	d := m.decide(w)
	if out := d.layout.Domains[0].LeftOut; len(out) > 0 {
		t.Errorf("left out: %v", out)
	}
	if len(m.refreshes) > 0 || !d.refreshDue.IsZero() {
		t.Errorf("refreshes %v, due %s", m.refreshes, d.refreshDue)
	}
}

// A rewrite that does not reach the status does not cause endless passes, and alternating reports do not cause a storm
// of writes.
func TestRefreshesKeepTheirDelay(t *testing.T) {
	var m state
	s := service(web, 1)
	w := onBrEx(s)
	for _, n := range w.Nodes {
		reportStale(n)
	}
	s.Assigned = status(&m, w).Addrs
	s.Given = s.Assigned
	stale := func(is bool) *decision {
		for _, n := range w.Nodes {
			if is {
				reportStale(n, s.Assigned[0].String())
			} else {
				reportStale(n)
			}
		}
		return m.decide(w)
	}
	stale(true)
	w.Now = w.Now.Add(time.Hour) // and the status still does not list the ports
	if d := stale(true); d.refreshDue.Before(w.Now.Add(firstRefresh)) {
		t.Errorf("at %s a pass is due at %s", w.Now, d.refreshDue)
	}
	s.ListsPorts = true
	stale(true) // the second rewrite, with a longer delay after it
	s.ListsPorts = false
	next := m.refreshes[web].next
	for range 5 {
		stale(false)
		stale(true)
	}
	if got := m.refreshes[web]; got.next != next || got.lists {
		t.Errorf("after reports that alternate: %+v, want nothing before %s", got, next)
	}
}

// Before the databases have been read, the gateways are not known, so a new address waits. An address that a Service
// already has does not wait.
func TestStatusWaitsUntilTheDatabasesWereRead(t *testing.T) {
	var m state
	s := service(web, 1)
	w := onBrEx(s)
	for _, n := range w.Nodes {
		n.Guarded = true
	}
	w.Bridges = nil
	say := func() *kube.ServiceStatus { return newStatusBuilder(m.decide(w), observed{}).service(s) }
	if got := say(); got != nil {
		t.Errorf("a new address: %v", got.Addrs)
	}
	s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.Given = s.Assigned
	if got := say(); got == nil || len(got.Addrs) != 1 {
		t.Errorf("an address that it has: %v", got)
	}
}
