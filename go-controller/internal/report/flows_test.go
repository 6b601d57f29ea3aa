// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// programmed returns the state of a dataplane that has applied the whole decision.
func programmed(d *decide.Decision) Observed {
	k := Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{}}
	for key, p := range d.Plans {
		k.Programmed[key] = loop.Result{Key: key, Plan: p}
	}
	return k
}

// statusOf returns the status that a pass builds for Service web once OVN has applied everything and the first gateway
// carries the Service.
func statusOf(m *decide.State, w *world.Snapshot) *status.Service {
	d := m.Decide(w)
	v := NewBuilder(d, programmed(d))
	for _, domain := range d.Layout.Domains {
		for _, s := range domain.Shards {
			v.active[s.ID] = s.Gateways[0].Node
		}
	}
	var last Cache
	return v.Services(&last)[web]
}

// An address appears in a status only once OVN's port is on a bridge, because the flows that OVN-Kubernetes computes at
// that moment stay.
func TestStatusOmitsAddressesWithoutBridgePort(t *testing.T) {
	var m decide.State
	s := worldtest.Service(web, 1)
	w := worldtest.OnBrEx(s)
	got := statusOf(&m, w)
	if len(got.Addrs) != 0 || got.Allocated.Reason != v1alpha1.ReasonDomainNotReady ||
		!strings.Contains(got.Allocated.Message, "slb-lan-localnet") {
		t.Errorf("without ports: %v %v", got.Addrs, got.Allocated)
	}
	if d := m.Decide(w); len(d.Topology.Domains[0].Residents) != 3 || len(d.Plans) != 0 {
		t.Errorf("without ports: residents %v, plans %v", d.Topology.Domains[0].Residents, d.Plans)
	}
	worldtest.ReportStale(w.Nodes[1])
	got = statusOf(&m, w)
	if len(got.Addrs) != 1 || got.Allocated.Status != metav1.ConditionTrue ||
		got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("with one port: %v %v %v", got.Addrs, got.Allocated, got.Announced)
	}
	// An address in the status stays there.
	s.Assigned = got.Addrs
	w.Nodes[1].Localnets = map[string]world.Localnet{}
	if got = statusOf(&m, w); len(got.Addrs) != 1 || got.Announced.Status != metav1.ConditionFalse {
		t.Errorf("once the port is gone: %v %v", got.Addrs, got.Announced)
	}
	// So does one that another client has cleared.
	s.Given, s.Assigned = s.Assigned, nil
	m = decide.State{}
	if got = statusOf(&m, w); len(got.Addrs) != 1 || got.Allocated.Status != metav1.ConditionTrue {
		t.Errorf("cleared while the port is gone: %v %v", got.Addrs, got.Allocated)
	}
}

// An address whose flows OVN has in the wrong routers is not reported as announced.
func TestMisplacedFlowIsReported(t *testing.T) {
	var m decide.State
	s := worldtest.Service(web, 1)
	w := worldtest.OnBrEx(s)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	s.Assigned, s.Given = statusOf(&m, w).Addrs, statusOf(&m, w).Addrs
	w.Misplaced = map[netip.Addr]bool{netip.MustParseAddr("10.50.0.7"): true}
	if got := statusOf(&m, w); got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("another's address: %v", got.Announced)
	}
	w.Misplaced = map[netip.Addr]bool{s.Assigned[0]: true}
	got := statusOf(&m, w)
	if got.Announced.Status != metav1.ConditionFalse || got.Announced.Reason != v1alpha1.ReasonMisplacedFlow ||
		!strings.Contains(got.Announced.Message, s.Assigned[0].String()) {
		t.Errorf("misplaced: %v", got.Announced)
	}
	if !slices.Equal(got.Addrs, s.Assigned) {
		t.Errorf("addresses %v, want those that it had", got.Addrs)
	}
}

// Another Service may be the cause, which lists the address in spec.externalIPs. The condition does not name it: it may
// be in another namespace. Of prefixes for a long list it is not known whether they contain the address.
func TestFlowsOfAListedAddressNameTheCause(t *testing.T) {
	for reason, spoil := range map[string]func(w *world.Snapshot, a netip.Addr){
		v1alpha1.ReasonMisplacedFlow: func(w *world.Snapshot, a netip.Addr) { w.Misplaced = map[netip.Addr]bool{a: true} },
		v1alpha1.ReasonStaleFlow: func(w *world.Snapshot, a netip.Addr) {
			for _, n := range w.Nodes {
				worldtest.ReportStale(n, a.String())
			}
		},
	} {
		var m decide.State
		s := worldtest.Service(web, 1)
		w := worldtest.OnBrEx(s)
		for _, n := range w.Nodes {
			worldtest.ReportStale(n)
		}
		s.Assigned, s.Given = statusOf(&m, w).Addrs, statusOf(&m, w).Addrs
		spoil(w, s.Assigned[0])
		for _, listed := range []string{"10.50.0.7/32", "10.50.0.0/24", s.Assigned[0].String() + "/32"} {
			w.Listed = world.Listed{netip.MustParsePrefix(listed): {}}
			got, cause := statusOf(&m, w).Announced, "another Service lists the address in spec.externalIPs"
			if got.Reason != reason || strings.Contains(got.Message, cause) != w.Listed.HasExactly(s.Assigned[0]) {
				t.Errorf("%s, and %s is listed: %v", reason, listed, got)
			}
		}
	}
}

// While the bridge of the gateway keeps requests from OVN, Announced is False. The status is rewritten at growing
// intervals so that OVN-Kubernetes recomputes its flows.
func TestStatusIsRefreshedWhileBridgeFlowsAreStale(t *testing.T) {
	var m decide.State
	s := worldtest.Service(web, 1)
	w := worldtest.OnBrEx(s)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	s.Assigned, s.Given = statusOf(&m, w).Addrs, statusOf(&m, w).Addrs
	if got := statusOf(&m, w); got.ListPorts || got.Announced.Status != metav1.ConditionTrue {
		t.Fatalf("at first: %v %v", got.ListPorts, got.Announced)
	}
	addr := s.Assigned[0].String()
	worldtest.ReportStale(w.Nodes[0], "10.50.0.7")
	if got := statusOf(&m, w); got.ListPorts || got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("another's address: %v %v", got.ListPorts, got.Announced)
	}
	for _, n := range w.Nodes {
		worldtest.ReportStale(n, addr)
	}
	got := statusOf(&m, w)
	if !got.ListPorts || got.Announced.Status != metav1.ConditionFalse ||
		got.Announced.Reason != v1alpha1.ReasonStaleFlow {
		t.Errorf("stale: %v %v", got.ListPorts, got.Announced)
	}
	if got = statusOf(&m, w); !got.ListPorts {
		t.Error("before the status is seen, it is meant otherwise")
	}
	s.ListsPorts = true
	if got = statusOf(&m, w); !got.ListPorts {
		t.Error("it was written again at once")
	}
	w.Now = w.Now.Add(10 * time.Second)
	if got = statusOf(&m, w); got.ListPorts {
		t.Error("it was not written again after a while")
	}
	s.ListsPorts = false
	w.Now = w.Now.Add(10 * time.Second)
	if got = statusOf(&m, w); got.ListPorts {
		t.Error("the second time it was not waited for longer")
	}
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	if got = statusOf(&m, w); got.ListPorts || got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("at last: %v %v", got.ListPorts, got.Announced)
	}
}

// A gateway keeps working without its guard, but it is not known whether requests reach it.
func TestAnnouncedIsUnknownWithoutGuardOnBrEx(t *testing.T) {
	var m decide.State
	s := worldtest.Service(web, 1)
	w := worldtest.OnBrEx(s)
	for _, n := range w.Nodes {
		worldtest.ReportStale(n)
	}
	s.Assigned = statusOf(&m, w).Addrs
	w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n1", Settled: true,
		Order: []string{"n1", "n2", "n3"}}}
	for _, n := range w.Nodes {
		n.Localnets = nil
	}
	got := statusOf(&m, w)
	if len(got.Addrs) != 1 || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonNoGuard {
		t.Errorf("%v %v", got.Addrs, got.Announced)
	}
}

// A new address appears in a status only once OVN has it.
func TestStatusWaitsForOVN(t *testing.T) {
	for name, guarded := range map[string]bool{"guards run": true, "no guards": false} {
		t.Run(name, func(t *testing.T) {
			var m decide.State
			s := worldtest.Service(web, 1)
			w := worldtest.Small(5, s)
			for _, n := range w.Nodes {
				n.Guarded = guarded
			}
			status := func(known Observed) *status.Service {
				return NewBuilder(m.Decide(w), known).Services(&Cache{})[web]
			}
			const waits, given = false, true
			expect := func(when string, known Observed, want bool) {
				t.Helper()
				if got := status(known); (got != nil) != want || got != nil && len(got.Addrs) != 1 {
					t.Errorf("%s: %+v", when, got)
				}
			}
			expect("before the databases were read", Observed{}, waits)
			expect("while it is probed, or OVN is configured", Observed{Synced: true, Configured: true}, waits)
			w.Now = w.Now.Add(5 * time.Second) // no guard reports that it has probed the address
			expect("before OVN has it", Observed{Synced: true, Configured: true}, waits)
			expect("without a connection to OVN", Observed{Synced: true, Configured: true, Unreachable: "no connection"}, given)
			expect("when no shard can be configured", Observed{Synced: true, TopologyError: errors.New("no join port")}, given)
			refused := map[world.Key]loop.Result{web: {Key: web, Err: errors.New("no")}}
			expect("when OVN refuses it", Observed{Synced: true, Configured: true, Programmed: refused}, given)
			expect("when OVN has it", programmed(m.Decide(w)), given)
			w.Cluster.ModeSetting.Mode = world.BGPOnly
			expect("when no address goes to OVN", Observed{}, given)
		})
	}
}

// Before the databases have been read, the gateways are not known, so a new address waits. An address that a Service
// already has does not wait.
func TestStatusWaitsUntilTheDatabasesWereRead(t *testing.T) {
	var m decide.State
	s := worldtest.Service(web, 1)
	w := worldtest.OnBrEx(s)
	for _, n := range w.Nodes {
		n.Guarded = true
	}
	w.Bridges = nil
	say := func() *status.Service { return NewBuilder(m.Decide(w), Observed{}).Service(s) }
	if got := say(); got != nil {
		t.Errorf("a new address: %v", got.Addrs)
	}
	s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.Given = s.Assigned
	if got := say(); got == nil || len(got.Addrs) != 1 {
		t.Errorf("an address that it has: %v", got)
	}
}
