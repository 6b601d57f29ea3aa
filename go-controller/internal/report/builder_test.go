// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var web = world.Key{Namespace: "shop", Name: "web"}

func TestConditionNamesFirstBrokenLink(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	has := func(s *world.Service) {
		s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.9")}
		s.Given = s.Assigned
	}
	type input struct {
		s *world.Service
		w *world.Snapshot
		k Observed
	}
	for name, test := range map[string]struct {
		change func(*input)
		want   status.Verdict
	}{
		"served": {func(*input) {}, status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced,
			Message: "is announced by OVN on gateway n2 (L2Domain lan, shard 0)"}},
		"no address": {func(i *input) { i.w.Pools = nil },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotAllocated}},
		"no domain": {func(i *input) { i.w.Domains = nil },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoDomain, Message: "10.50.0.1"}},
		"no dataplane": {func(i *input) { i.w.Cluster.NoDatabase = true },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnsupported, Message: "northbound"}},
		"refused": {func(i *input) { i.k.Programmed[web] = loop.Result{Err: errors.New("no such table")} },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDataplaneError, Message: "no such table"}},
		"no active gateway": {func(i *input) { i.w.ShardStates = nil },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoActiveGateway,
				Message: "shard 0 of L2Domain lan"}},
		"chassis without node": {func(i *input) { i.w.ShardStates[shard] = world.ShardState{Active: "unknown"} },
			status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced, Message: "gateway unknown"}},
		"no endpoints": {func(i *input) { i.s.Slices = nil },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoEndpoints}},
		"endpoints out of reach": {func(i *input) {
			i.w.Cluster.ClusterSubnets = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
			i.s.Slices[0].Endpoints = append(i.s.Slices[0].Endpoints, world.Endpoint{Addr: netip.MustParseAddr("172.18.0.11"),
				Ready: true})
		}, status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced,
			Message: "; no traffic is sent to 1 endpoint because replies would not return through the gateway (neither in the " +
				"pod subnet of a node of this zone, k8s.ovn.org/node-subnets, nor the address of a node with " +
				"k8s.ovn.org/node-masquerade-subnet): 172.18.0.11"}},
		"only endpoints out of reach": {func(i *input) {
			i.w.Cluster.ClusterSubnets = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
		}, status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoEndpoints,
			Message: "would not return through the gateway (neither in the pod subnet of a node of this zone, " +
				"k8s.ovn.org/node-subnets, nor the address of a node with k8s.ovn.org/node-masquerade-subnet): 10.244.0.1"}},
		"the connection was just lost": {func(i *input) {
			has(i.s)
			i.k.Unread, i.k.Programmed[web] = true, loop.Result{Err: errors.New("not connected")}
		}, status.Verdict{}},
		"not synced":  {func(i *input) { has(i.s); i.k.Synced = false }, status.Verdict{}},
		"not applied": {func(i *input) { has(i.s); i.k.Programmed[web] = loop.Result{} }, status.Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{s: worldtest.Service(web, 1), k: Observed{Synced: true, Programmed: map[world.Key]loop.Result{}}}
			in.w = worldtest.Small(5, in.s)
			in.w.ShardStates = map[world.ShardID]world.ShardState{shard: {Active: "n2"}}
			test.change(&in)
			var m decide.State
			d := m.Decide(in.w)
			if _, applied := in.k.Programmed[web]; !applied {
				in.k.Programmed[web] = loop.Result{Key: web, Plan: d.Plans[web]}
			}
			got := NewBuilder(d, in.k).Services(&Cache{})[web].Announced
			if (test.want == status.Verdict{}) {
				if got != nil {
					t.Errorf("got %+v, want no verdict yet", *got)
				}
				return
			}
			if got == nil || got.Status != test.want.Status || got.Reason != test.want.Reason ||
				!strings.Contains(got.Message, test.want.Message) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// A change of backends does not make an address unannounced.
func TestAnnouncedStandsWhileBackendsChange(t *testing.T) {
	var m decide.State
	s := worldtest.Service(web, 1)
	w := worldtest.Small(5, s)
	w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n1"}}
	before := m.Decide(w).Plans[web]
	w.Services = []*world.Service{worldtest.Service(web, 2)}
	d := m.Decide(w)
	k := Observed{Synced: true, Programmed: map[world.Key]loop.Result{web: {Key: web, Plan: before}}}
	if got := NewBuilder(d, k).Services(&Cache{})[web].Announced; got == nil ||
		got.Status != metav1.ConditionTrue {
		t.Errorf("got %+v, want True", got)
	}
}

func TestDomainReportsMissingParts(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*world.Snapshot, *Observed)
		accepted, ready string // reason and part of the message; "-" for no condition
	}{
		"nothing": {func(*world.Snapshot, *Observed) {}, "Accepted: ", "Ready: 1 shard with gateways"},
		"a pool": {func(w *world.Snapshot, _ *Observed) { w.Domains[0].Pools = []string{"gone", "lan"} },
			`PartlyUsable: pool "gone" does not exist`, "Ready: "},
		"all pools": {func(w *world.Snapshot, _ *Observed) { w.Domains[0].Pools = []string{"gone"} },
			`PartlyUsable: pool "gone" does not exist`,
			`NoPools: no pool is assigned to the L2Domain; pool "gone" does not exist`},
		"its pool, which an older one has": {func(w *world.Snapshot, _ *Observed) {
			older := *w.Domains[0]
			older.Name = "a"
			w.Domains = append(w.Domains, &older)
		}, `PartlyUsable: pool "lan" belongs to L2Domain "a"`, "NoPools: "},
		"a third gateway": {func(w *world.Snapshot, _ *Observed) { w.Nodes = w.Nodes[:2] }, "Accepted: ",
			"TooFewGateways: 1 shard with gateways; fewer than 3 gateways"},
		"gateways": {func(w *world.Snapshot, _ *Observed) {
			w.Nodes = nil
		}, "Accepted: ", "NoGateway: none of the 3 selected nodes"},
		"nodes attached to it": {func(w *world.Snapshot, _ *Observed) {
			w.Bridges = map[string]world.Bridges{"chassis-1": {}, "chassis-2": {}, "chassis-3": {}}
		}, "Accepted: ", `NoGateway: none of the 3 selected nodes can be a gateway: ` +
			`ovn-bridge-mappings of node "n1", "n2", "n3" are empty`},
		"a node attached to it": {func(w *world.Snapshot, _ *Observed) {
			w.Bridges = map[string]world.Bridges{"chassis-1": {}}
		}, "Accepted: ",
			"TooFewGateways: 1 shard with gateways; fewer than 3 gateways"},
		"gateways that stay": {func(w *world.Snapshot, _ *Observed) {
			for _, n := range w.Nodes {
				n.Draining = "label"
			}
		}, "Accepted: ", "GatewaysDraining: 1 shard with gateways; all gateways are draining"},
		"OVN's facts": {func(w *world.Snapshot, k *Observed) { w.Nodes, k.Synced = nil, false }, "Accepted: ", "-"},
		"sense": {func(w *world.Snapshot, _ *Observed) { w.Domains[0].Problems = []string{"spec.vlan: spoilt"} },
			"Invalid: spec.vlan: spoilt", "Invalid: "},
		"topology": {func(_ *world.Snapshot, k *Observed) {
			k.TopologyError = errors.New("no such table")
		}, "Accepted: ", "DataplaneError: no such table"},
		"a place for a shard": {func(_ *world.Snapshot, k *Observed) {
			k.TopologyError = fmt.Errorf("configure: %w", dataplane.ShardsError{{Domain: "lan", Index: 3}: "no number is free",
				{Domain: "dmz", Index: 1}: "nor here"})
		}, "Accepted: ", "DataplaneError: shard lan/3: no number is free; retrying"},
		"a place for a shard of another domain": {func(_ *world.Snapshot, k *Observed) {
			k.TopologyError = dataplane.ShardsError{{Domain: "dmz", Index: 1}: "no number is free"}
		}, "Accepted: ", "Ready: "},
		"a connection for a moment": {func(_ *world.Snapshot, k *Observed) {
			k.Unread, k.TopologyError = true, errors.New("not connected")
		}, "Accepted: ", "-"},
		"news of OVN": {func(_ *world.Snapshot, k *Observed) { k.Configured = false }, "Accepted: ", "-"},
		"OVN, by will": {func(w *world.Snapshot, k *Observed) {
			w.Cluster.NoDatabase, k.Configured = true, false
		}, "Accepted: ", "Unsupported: no northbound database"},
		"one zone": {func(w *world.Snapshot, k *Observed) {
			for _, n := range w.Nodes {
				n.Zone = n.Name
			}
			k.Synced, k.Unreachable = false, "not connected"
		}, "Accepted: ", "Unsupported: OVN-Kubernetes runs in interconnect mode"},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldtest.Small(5)
			k := Observed{Synced: true, Configured: true}
			test.change(w, &k)
			var m decide.State
			got, _ := NewBuilder(m.Decide(w), k).Domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
			for kind, want := range map[string]string{v1alpha1.ConditionAccepted: test.accepted,
				v1alpha1.ConditionReady: test.ready} {
				said := "-"
				if c := meta.FindStatusCondition(got.Status.Conditions, kind); c != nil {
					said = c.Reason + ": " + c.Message
				}
				if !strings.HasPrefix(said, want) {
					t.Errorf("%s has the message %q, want %q", kind, said, want)
				}
			}
		})
	}
}

// A pool whose domain has no eligible node reports that, and so do its Services.
func TestPoolReportsMissingPartsOfDomain(t *testing.T) {
	w := worldtest.Small(5, worldtest.Service(web, 1))
	w.Bridges = map[string]world.Bridges{"chassis-1": {}, "chassis-2": {"lan": "br-lan"}, "chassis-3": {}}
	var m decide.State
	v := NewBuilder(m.Decide(w), Observed{Synced: true})
	got, _ := v.Pools()["lan"](&v1alpha1.IPAddressPool{}, time.Now())
	ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
	announced := v.Services(&Cache{})[web].Announced
	const want = `L2Domain "lan": none of the 3 selected nodes can be a gateway: ` +
		`ovn-bridge-mappings of node "n1", "n3" are empty: none is for physical network "physnet"; ` +
		`ovn-bridge-mappings of node "n2" are lan:br-lan`
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonNoGateway ||
		!strings.Contains(ready.Message, want) {
		t.Errorf("condition of the pool: %+v", ready)
	}
	if announced == nil || announced.Reason != v1alpha1.ReasonNoGateway || !strings.Contains(announced.Message, want) {
		t.Errorf("condition of the Service: %+v", announced)
	}
}

// The nodes that are excluded depend on the states of the shards. Until OVN has reported them, a restarted
// controller does not change the status that its predecessor wrote.
func TestDomainStatusIsKeptUntilOVNReports(t *testing.T) {
	w := worldtest.Small(5, worldtest.Service(web, 1))
	w.Domains[0].MaxGateways = 1
	shard := world.ShardID{Domain: "lan"}
	for _, chassis := range []string{"chassis-1", "chassis-2", "chassis-3"} {
		w.ShardStates = map[world.ShardID]world.ShardState{shard: {Active: chassis, Order: []string{chassis}}}
		var m decide.State
		before, _ := NewBuilder(m.Decide(w), Observed{Synced: true,
			Configured: true}).Domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
		if n := len(before.Status.ExcludedNodes); n != 2 {
			t.Fatalf("%d nodes are excluded, want 2", n)
		}
		w.ShardStates = nil
		for _, k := range []Observed{{}, {Synced: true}} {
			if k.Synced {
				w.ShardStates = map[world.ShardID]world.ShardState{shard: {Active: chassis, Order: []string{chassis}}}
			}
			var fresh decide.State
			if after, changed := NewBuilder(fresh.Decide(w), k).Domains()["lan"](before, time.Now()); changed {
				t.Errorf("active gateway %s: a restarted controller that observed %+v writes %+v over %+v", chassis, k,
					after.Status, before.Status)
			}
		}
	}
}

func TestSharedAddressCountsOnce(t *testing.T) {
	services := []*world.Service{worldtest.Service(web, 1),
		worldtest.Service(world.Key{Namespace: "shop", Name: "dns"}, 2),
		worldtest.Service(world.Key{Namespace: "shop", Name: "alone"}, 3)}
	for i, s := range services[:2] {
		s.SharingKey, s.Requested = "same", []netip.Addr{netip.MustParseAddr("10.50.0.100")}
		s.Ports[0].Port += uint16(i)
	}
	w := worldtest.Small(5, services...)
	w.ShardStates = map[world.ShardID]world.ShardState{
		{Domain: "lan"}: {Active: "n2", Order: []string{"n2"}},
	}
	var m decide.State
	d := m.Decide(w)
	for _, s := range services {
		if o := d.Allocation.Services[s.Key]; len(o.Addrs) != 1 {
			t.Fatalf("%s has %v: %s", s.Key, o.Addrs, o.Message)
		}
	}
	out, _ := NewBuilder(d, Observed{Synced: true, Configured: true}).Domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
	if got := out.Status.Shards; len(got) != 1 || got[0].Addresses != 2 {
		t.Errorf("%+v, want one shard with 2 addresses", got)
	}
}

// A rejected domain no longer reports its former state, even if the database that had it is gone.
func TestRefusedDomainHasNoGateways(t *testing.T) {
	w := worldtest.Small(5, worldtest.Service(web, 1))
	w.ShardStates = map[world.ShardID]world.ShardState{
		{Domain: "lan"}: {Active: "n2", Order: []string{"n2"}},
	}
	var m decide.State
	before, _ := NewBuilder(m.Decide(w), Observed{Synced: true,
		Configured: true}).Domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
	if before.Status.ActiveGatewaySummary != "n2" || before.Status.EligibleNodes == 0 {
		t.Fatalf("served: %+v", before.Status)
	}
	for _, n := range w.Nodes {
		n.Zone = n.Name
	}
	after, _ := NewBuilder(m.Decide(w), Observed{Unreachable: "not connected"}).Domains()["lan"](before, time.Now())
	if after == nil || after.Status.ActiveGatewaySummary != "" || after.Status.EligibleNodes != 0 ||
		len(after.Status.Shards) > 0 {
		t.Errorf("refused: %+v", after)
	}
}

// A request to move shards shows its progress in the status, and why it failed in the condition Accepted.
func TestMoveIsReported(t *testing.T) {
	w := worldtest.Small(5, worldtest.Service(web, 1))
	w.Domains[0].Move = &world.MoveRequest{Text: "text", Node: "n2", Shards: []int{0}}
	w.ShardStates = map[world.ShardID]world.ShardState{
		{Domain: "lan"}: {Active: "n1", Order: []string{"n1", "n2"}},
	}
	var m decide.State
	status := func(have *v1alpha1.L2Domain) *v1alpha1.L2Domain {
		out, changed := NewBuilder(m.Decide(w), Observed{Synced: true, Configured: true}).Domains()["lan"](have, time.Now())
		if !changed {
			t.Fatal("the status does not change")
		}
		return out
	}
	moving := status(&v1alpha1.L2Domain{})
	if got := moving.Status.Move; got == nil || got.Request != "text" || got.State != v1alpha1.MoveInProgress {
		t.Errorf("%+v, want a move in progress", got)
	}
	w.Nodes[1].Draining = "label"
	failed := status(moving)
	want := `node "n2" is draining: label`
	if got := failed.Status.Move; got == nil || got.State != v1alpha1.MoveFailed || got.Message != want {
		t.Errorf("%+v, want a failed move", got)
	}
	c := meta.FindStatusCondition(failed.Status.Conditions, v1alpha1.ConditionAccepted)
	if c.Reason != v1alpha1.ReasonPartlyUsable || c.Message != "annotation "+v1alpha1.AnnotationMove+": "+want {
		t.Errorf("condition Accepted %+v", c)
	}
	w.Domains[0].Move = nil
	if got := status(failed).Status.Move; got != nil {
		t.Errorf("without a request: %+v", got)
	}
}

// A UDP server on its node's own network may reply from another address. Only the user can know whether it does.
func TestUDPHostBackendsAreReported(t *testing.T) {
	b := func(addr string, host bool) plan.Backend {
		return plan.Backend{Addr: netip.MustParseAddrPort(addr), Node: "n1", HostNetwork: host}
	}
	p := &plan.Service{Listeners: []plan.Listener{
		{Protocol: world.TCP, Backends: []plan.Backend{b("172.18.0.13:80", true)}},
		{Protocol: world.UDP, Backends: []plan.Backend{b("172.18.0.12:53", true), b("10.244.0.3:53", false),
			b("172.18.0.11:53", true)}},
		{Protocol: world.UDP, Backends: []plan.Backend{b("172.18.0.12:54", true)}},
	}}
	if got := joined(hostsOverUDP(p)); got != "172.18.0.11, 172.18.0.12" {
		t.Errorf("%q", got)
	}
}

// The ingress of another controller is neither removed nor announced.
func TestForeignAddressIsNotAnnounced(t *testing.T) {
	s := worldtest.Service(web, 1)
	s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.1")} // the segment's next hop
	var m decide.State
	d := m.Decide(worldtest.Small(5, s))
	status := NewBuilder(d, Observed{Synced: true}).Services(&Cache{})[web]
	if d.Plans[web] != nil || !status.LeaveIngress || status.Allocated.Reason != "ForeignAddress" ||
		status.Announced.Reason != "NotAllocated" {
		t.Errorf("plan %+v, status %+v", d.Plans[web], status)
	}
	host := worldtest.Service(web, 1)
	host.AssignedHosts = []string{"lb.example.org"}
	w := worldtest.Small(5, host)
	status = NewBuilder(m.Decide(w), Observed{Synced: true}).Services(&Cache{})[web]
	if !status.LeaveIngress || len(status.Addrs) > 0 || status.Allocated.Reason != "ForeignAddress" {
		t.Errorf("with a host name: %+v", status)
	}
	w.Cluster.ModeSetting.Mode = world.Disabled
	if status := NewBuilder(m.Decide(w), Observed{Synced: true}).Services(&Cache{})[web]; status != nil {
		t.Errorf("with a host name, switched off: %+v, want nothing to write", status)
	}
	given := *s
	given.Given = s.Assigned
	if d := m.Decide(worldtest.Small(5, &given)); !slices.Equal(d.Allocation.Services[web].Addrs, s.Assigned) {
		t.Errorf("what we gave is not kept: %+v", d.Allocation.Services[web])
	}
}
