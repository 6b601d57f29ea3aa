// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var web = world.Key{Namespace: "shop", Name: "web"}

// small returns a snapshot with a pool of a few addresses, a domain of three nodes, and Services with one backend each.
func small(addresses int, services ...*world.Service) *world.Snapshot {
	first := netip.MustParseAddr("10.50.0.100")
	last := first
	for range addresses - 1 {
		last = last.Next()
	}
	w := &world.Snapshot{
		Pools: []*world.Pool{{Name: "lan", AutoAssign: true, Ranges: []netipx.IPRange{netipx.IPRangeFrom(first, last)}}},
		Domains: []*world.Domain{{
			Name: "lan", Pools: []string{"lan"}, Nodes: []string{"n1", "n2", "n3"}, PhysicalNetwork: "physnet", Shards: 1,
			Subnets: []world.Subnet{{Prefix: netip.MustParsePrefix("10.50.0.0/24"), Gateway: netip.MustParseAddr("10.50.0.1")}},
		}},
		Services: services,
	}
	for i := 1; i <= 3; i++ {
		pods := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i - 1), 0}), 24)
		w.Nodes = append(w.Nodes, &world.Node{Name: fmt.Sprintf("n%d", i), Chassis: fmt.Sprintf("chassis-%d", i),
			PodSubnets: []netip.Prefix{pods}})
	}
	return w
}

func service(key world.Key, age int) *world.Service {
	port := world.Port{Name: "http", Protocol: world.TCP, Port: 80}
	backend := netip.AddrFrom4([4]byte{10, 244, 0, byte(age)})
	return &world.Service{
		Key: key, UID: key.Name, Created: time.Unix(int64(age), 0), Families: []world.Family{world.IPv4},
		Ports: []world.Port{port},
		Slices: []*world.Slice{{Family: world.IPv4, Ports: []world.Port{port},
			Endpoints: []world.Endpoint{{Addr: backend, Ready: true, Serving: true}}}},
	}
}

// An address must not be granted again while the API server does not show the first write yet.
func TestGrantsNotSeenYetAreHeld(t *testing.T) {
	var m state
	young := service(web, 2)
	first := m.decide(small(1, young)).allocation.Services[web].Addrs
	if len(first) != 1 {
		t.Fatalf("addresses: %v", first)
	}
	// An older Service appears before the status of the younger one.
	old := service(world.Key{Namespace: "shop", Name: "old"}, 1)
	d := m.decide(small(1, young, old))
	if got := d.allocation.Services[web].Addrs; len(got) != 1 || got[0] != first[0] {
		t.Errorf("web has %v, want the %v that is being written", got, first)
	}
	if got := d.allocation.Services[old.Key].Addrs; len(got) != 0 {
		t.Errorf("old has %v, want none", got)
	}
	// A new Service with the same name is a different Service.
	namesake := service(web, 3)
	namesake.UID = "another"
	if got := m.decide(small(1, namesake, old)).allocation.Services[old.Key].Addrs; len(got) != 1 {
		t.Errorf("old has %v once web was made anew, want the address", got)
	}
}

func TestUnchangedPlansAreTheSamePointers(t *testing.T) {
	var m state
	s := service(web, 1)
	first := m.decide(small(5, s)).plans[web]
	if again := m.decide(small(5, s)).plans[web]; again != first {
		t.Error("the same Service has another plan")
	}
	twin := *s
	twin.Limits = []string{"told to the user"}
	if again := m.decide(small(5, &twin)).plans[web]; again != first {
		t.Error("a Service that needs the same has another plan")
	}
	moved := service(web, 9)
	if again := m.decide(small(5, moved)).plans[web]; again == first {
		t.Error("a Service with another backend has the same plan")
	}
}

// A node that becomes reachable is a backend of Services that did not change.
func TestPlansFollowTheNodes(t *testing.T) {
	var m state
	pods := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	pod, host := service(web, 1), service(world.Key{Namespace: "shop", Name: "host"}, 2)
	host.Slices[0].Endpoints[0].Addr = netip.MustParseAddr("172.18.0.11")
	w := small(5, pod, host)
	w.Cluster.PodNets = pods
	before := m.decide(w)
	if p := before.plans[host.Key]; len(p.Unreachable) != 1 || len(p.Listeners[0].Backends) != 0 {
		t.Errorf("out of reach: %+v", p)
	}
	near := *w
	near.Nodes = slices.Clone(w.Nodes)
	n1 := *w.Nodes[0]
	n1.Hosts = []world.Host{{Addr: netip.MustParseAddr("172.18.0.11"), Masquerade: netip.MustParseAddr("169.254.169.3")}}
	near.Nodes[0] = &n1
	d := m.decide(&near)
	if p := d.plans[host.Key]; len(p.Unreachable) != 0 || len(p.Listeners[0].Backends) != 1 ||
		p.Listeners[0].Backends[0].Node != "n1" || !p.Listeners[0].Backends[0].Host {
		t.Errorf("within reach: %+v", p)
	}
	if len(d.fabric.Nodes[0].Hosts) != 1 {
		t.Errorf("the fabric has %+v", d.fabric.Nodes)
	}
	if d.plans[web] != before.plans[web] {
		t.Error("a Service that needs the same has another plan")
	}
	more := *host
	more.Slices = append(slices.Clone(host.Slices), host.Slices[0])
	if !m.amend(d, host.Key, kube.Change{Was: host, Is: &more}) || len(d.plans[host.Key].Listeners[0].Backends) != 1 {
		t.Errorf("amended: %+v", d.plans[host.Key])
	}
}

func TestConditionNamesFirstBrokenLink(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	has := func(s *world.Service) {
		s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.9")}
		s.Given = s.Assigned
	}
	type input struct {
		s *world.Service
		w *world.Snapshot
		k observed
	}
	for name, test := range map[string]struct {
		change func(*input)
		want   kube.Verdict
	}{
		"served": {func(*input) {}, kube.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced,
			Message: "is answered for by OVN on gateway n2 (L2Domain lan, shard 0)"}},
		"no address": {func(i *input) { i.w.Pools = nil },
			kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotAllocated}},
		"no domain": {func(i *input) { i.w.Domains = nil },
			kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoDomain, Message: "10.50.0.1"}},
		"no dataplane": {func(i *input) { i.w.Cluster.NoDatabase = true },
			kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnsupported, Message: "northbound"}},
		"refused": {func(i *input) { i.k.programmed[web] = loop.Result{Err: errors.New("no such table")} },
			kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDataplaneError, Message: "no such table"}},
		"nobody carries it": {func(i *input) { i.w.Carriers = nil },
			kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoActiveGateway,
				Message: "shard 0 of L2Domain lan"}},
		"chassis without node": {func(i *input) { i.w.Carriers[shard] = world.Carrier{Active: "stranger"} },
			kube.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced, Message: "gateway stranger"}},
		"no endpoints": {func(i *input) { i.s.Slices = nil },
			kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoEndpoints}},
		"endpoints out of reach": {func(i *input) {
			i.w.Cluster.PodNets = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
			i.s.Slices[0].Endpoints = append(i.s.Slices[0].Endpoints, world.Endpoint{Addr: netip.MustParseAddr("172.18.0.11"),
				Ready: true})
		}, kube.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAnnounced,
			Message: "; 1 endpoints take no traffic, for their replies would not come back (neither in the pod subnet of a " +
				"node of this zone, k8s.ovn.org/node-subnets, nor the address of a node that has a " +
				"k8s.ovn.org/node-masquerade-subnet): 172.18.0.11"}},
		"only endpoints out of reach": {func(i *input) {
			i.w.Cluster.PodNets = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
		}, kube.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoEndpoints,
			Message: "would not come back (neither in the pod subnet of a node of this zone, k8s.ovn.org/node-subnets, nor " +
				"the address of a node that has a k8s.ovn.org/node-masquerade-subnet): 10.244.0.1"}},
		"not synced": {func(i *input) { has(i.s); i.k.synced = false }, kube.Verdict{}},
		"not told":   {func(i *input) { has(i.s); i.k.programmed[web] = loop.Result{} }, kube.Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{s: service(web, 1), k: observed{synced: true, programmed: map[world.Key]loop.Result{}}}
			in.w = small(5, in.s)
			in.w.Carriers = map[world.ShardID]world.Carrier{shard: {Active: "chassis-2"}}
			test.change(&in)
			var m state
			d := m.decide(in.w)
			if _, told := in.k.programmed[web]; !told {
				in.k.programmed[web] = loop.Result{Key: web, Plan: d.plans[web]}
			}
			got := newStatusBuilder(d, in.k).services(&statusCache{})[web].Announced
			if (test.want == kube.Verdict{}) {
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
	var m state
	s := service(web, 1)
	w := small(5, s)
	w.Carriers = map[world.ShardID]world.Carrier{{Domain: "lan"}: {Active: "chassis-1"}}
	before := m.decide(w).plans[web]
	w.Services = []*world.Service{service(web, 2)}
	d := m.decide(w)
	k := observed{synced: true, programmed: map[world.Key]loop.Result{web: {Key: web, Plan: before}}}
	if got := newStatusBuilder(d, k).services(&statusCache{})[web].Announced; got == nil ||
		got.Status != metav1.ConditionTrue {
		t.Errorf("got %+v, want True", got)
	}
}

func TestDomainReportsMissingParts(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*world.Snapshot, *observed)
		accepted, ready string // reason and part of the message; "-" for no condition
	}{
		"nothing": {func(*world.Snapshot, *observed) {}, "Accepted: ", "Ready: 1 shards have gateways"},
		"a pool": {func(w *world.Snapshot, _ *observed) { w.Domains[0].Pools = []string{"gone", "lan"} },
			`PartlyUsable: pool "gone" does not exist`, "Ready: "},
		"all pools": {func(w *world.Snapshot, _ *observed) { w.Domains[0].Pools = []string{"gone"} },
			`PartlyUsable: pool "gone" does not exist`, `NoPools: the L2Domain gets no pool; pool "gone" does not exist`},
		"its pool, which an older one has": {func(w *world.Snapshot, _ *observed) {
			older := *w.Domains[0]
			older.Name = "a"
			w.Domains = append(w.Domains, &older)
		}, `PartlyUsable: pool "lan" belongs to L2Domain "a"`, "NoPools: "},
		"a third gateway": {func(w *world.Snapshot, _ *observed) { w.Nodes = w.Nodes[:2] }, "Accepted: ",
			"TooFewGateways: 1 shards have gateways; fewer than 3 gateways"},
		"gateways": {func(w *world.Snapshot, _ *observed) { w.Nodes = nil }, "Accepted: ", "NoGateway: none of the 3 nodes"},
		"nodes attached to it": {func(w *world.Snapshot, _ *observed) {
			w.Bridges = map[string]world.Bridges{"chassis-1": {}, "chassis-2": {}, "chassis-3": {}}
		}, "Accepted: ", `NoGateway: none of the 3 nodes selected can be a gateway: ovn-bridge-mappings of node "n1" are empty`},
		"a node attached to it": {func(w *world.Snapshot, _ *observed) {
			w.Bridges = map[string]world.Bridges{"chassis-1": {}}
		}, "Accepted: ",
			"TooFewGateways: 1 shards have gateways; fewer than 3 gateways"},
		"gateways that stay": {func(w *world.Snapshot, _ *observed) {
			for _, n := range w.Nodes {
				n.Draining = "label"
			}
		}, "Accepted: ", "GatewaysDraining: 1 shards have gateways; all gateways are draining"},
		"OVN's facts": {func(w *world.Snapshot, k *observed) { w.Nodes, k.synced = nil, false }, "Accepted: ", "-"},
		"sense": {func(w *world.Snapshot, _ *observed) { w.Domains[0].Problems = []string{"spec.vlan: spoilt"} },
			"Invalid: spec.vlan: spoilt", "Invalid: "},
		"ground": {func(_ *world.Snapshot, k *observed) {
			k.topologyError = errors.New("no such table")
		}, "Accepted: ", "DataplaneError: no such table"},
		"a place for a shard": {func(_ *world.Snapshot, k *observed) {
			k.topologyError = fmt.Errorf("configure: %w", dataplane.ShardsError{{Domain: "lan", Index: 3}: "no number is free",
				{Domain: "dmz", Index: 1}: "nor here"})
		}, "Accepted: ", "DataplaneError: shard lan/3: no number is free; it is tried again"},
		"a place for a shard of another domain": {func(_ *world.Snapshot, k *observed) {
			k.topologyError = dataplane.ShardsError{{Domain: "dmz", Index: 1}: "no number is free"}
		}, "Accepted: ", "Ready: "},
		"news of OVN": {func(_ *world.Snapshot, k *observed) { k.configured = false }, "Accepted: ", "-"},
		"OVN, by will": {func(w *world.Snapshot, k *observed) {
			w.Cluster.NoDatabase, k.configured = true, false
		}, "Accepted: ", "Unsupported: no northbound database"},
		"one zone": {func(w *world.Snapshot, k *observed) {
			for _, n := range w.Nodes {
				n.Zone = n.Name
			}
			k.synced, k.lost = false, "not connected"
		}, "Accepted: ", "Unsupported: OVN-Kubernetes runs in interconnect mode"},
	} {
		t.Run(name, func(t *testing.T) {
			w := small(5)
			k := observed{synced: true, configured: true}
			test.change(w, &k)
			var m state
			got, _ := newStatusBuilder(m.decide(w), k).domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
			for kind, want := range map[string]string{v1alpha1.ConditionAccepted: test.accepted,
				v1alpha1.ConditionReady: test.ready} {
				said := "-"
				if c := meta.FindStatusCondition(got.Status.Conditions, kind); c != nil {
					said = c.Reason + ": " + c.Message
				}
				if !strings.HasPrefix(said, want) {
					t.Errorf("%s says %q, want %q", kind, said, want)
				}
			}
		})
	}
}

// A pool whose domain has no eligible node reports that, and so do its Services.
func TestPoolReportsMissingPartsOfDomain(t *testing.T) {
	w := small(5, service(web, 1))
	w.Bridges = map[string]world.Bridges{"chassis-1": {}, "chassis-2": {"lan": "br-lan"}, "chassis-3": {}}
	var m state
	v := newStatusBuilder(m.decide(w), observed{synced: true})
	got, _ := v.pools()["lan"](&v1alpha1.IPAddressPool{}, time.Now())
	ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
	announced := v.services(&statusCache{})[web].Announced
	const want = `L2Domain "lan": none of the 3 nodes selected can be a gateway: ovn-bridge-mappings of node "n1" are empty`
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonNoGateway ||
		!strings.Contains(ready.Message, want) {
		t.Errorf("pool says %+v", ready)
	}
	if announced == nil || announced.Reason != v1alpha1.ReasonNoGateway || !strings.Contains(announced.Message, want) {
		t.Errorf("Service says %+v", announced)
	}
}

// The nodes that are left out depend on the carriers of the shards. Until OVN has reported the carriers, a restarted
// controller does not change the status that its predecessor wrote.
func TestDomainStatusIsKeptUntilOVNReports(t *testing.T) {
	w := small(5, service(web, 1))
	w.Domains[0].MaxGateways = 1
	shard := world.ShardID{Domain: "lan"}
	for _, chassis := range []string{"chassis-1", "chassis-2", "chassis-3"} {
		w.Carriers = map[world.ShardID]world.Carrier{shard: {Active: chassis, Order: []string{chassis}}}
		var m state
		before, _ := newStatusBuilder(m.decide(w), observed{synced: true,
			configured: true}).domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
		if n := len(before.Status.LeftOutNodes); n != 2 {
			t.Fatalf("%d nodes are left out, want 2", n)
		}
		w.Carriers = nil
		for _, k := range []observed{{}, {synced: true}} {
			if k.synced {
				w.Carriers = map[world.ShardID]world.Carrier{shard: {Active: chassis, Order: []string{chassis}}}
			}
			var fresh state
			if after, changed := newStatusBuilder(fresh.decide(w), k).domains()["lan"](before, time.Now()); changed {
				t.Errorf("carried by %s, a restarted controller that knows %+v writes %+v over %+v", chassis, k, after.Status,
					before.Status)
			}
		}
	}
}

// A rejected domain no longer reports its former state, even if the database that had it is gone.
func TestRefusedDomainHasNoGateways(t *testing.T) {
	w := small(5, service(web, 1))
	w.Carriers = map[world.ShardID]world.Carrier{{Domain: "lan"}: {Active: "chassis-2", Order: []string{"chassis-2"}}}
	var m state
	before, _ := newStatusBuilder(m.decide(w), observed{synced: true,
		configured: true}).domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
	if before.Status.ActiveGateways != "n2" || before.Status.EligibleNodes == 0 {
		t.Fatalf("served: %+v", before.Status)
	}
	for _, n := range w.Nodes {
		n.Zone = n.Name
	}
	after, _ := newStatusBuilder(m.decide(w), observed{lost: "not connected"}).domains()["lan"](before, time.Now())
	if after == nil || after.Status.ActiveGateways != "" || after.Status.EligibleNodes != 0 ||
		len(after.Status.Shards) > 0 {
		t.Errorf("refused: %+v", after)
	}
}

// Two controllers run at the same time and grant a Service different addresses. The first write is kept. Otherwise the
// controllers would overwrite each other indefinitely.
func TestEarlierForeignWriteIsKept(t *testing.T) {
	var m state
	s := service(web, 1)
	ours := m.decide(small(3, s)).allocation.Services[web].Addrs
	written := *s
	written.Assigned = []netip.Addr{ours[0].Next()}
	for range 2 {
		if got := m.decide(small(3, &written)).allocation.Services[web].Addrs; got[0] != written.Assigned[0] {
			t.Errorf("web has %v, want the %v that another controller wrote", got, written.Assigned)
		}
	}
	// The latest request counts, although the status shows the address granted before it.
	asked := *s
	asked.Requested = []netip.Addr{ours[0].Next().Next()}
	m = state{}
	m.decide(small(3, s))
	m.decide(small(3, &asked))
	echo := asked
	echo.Assigned = ours
	if got := m.decide(small(3, &echo)).allocation.Services[web].Addrs; got[0] != asked.Requested[0] {
		t.Errorf("web has %v, want the %v that is being written over our own %v", got, asked.Requested, ours)
	}
	// Another controller may write an address that was briefly granted here and never written.
	old := service(world.Key{Namespace: "shop", Name: "old"}, 0)
	m = state{}
	m.decide(small(3, s))
	taken := *old
	taken.Assigned = ours
	if got := m.decide(small(3, s, &taken)).allocation.Services[web].Addrs; got[0] == ours[0] {
		t.Fatalf("web has %v, as an older Service does", got)
	}
	moved := *old
	moved.Assigned = []netip.Addr{ours[0].Next().Next()}
	written.Assigned = ours
	if got := m.decide(small(3, &written, &moved)).allocation.Services[web].Addrs; got[0] != ours[0] {
		t.Errorf("web has %v, want the %v that another controller wrote", got, ours)
	}
}

// Two controllers run at the same time. An address that a status shows is not taken away for an older Service whose
// status does not show it.
func TestWhatAStatusShowsComesBeforeGrants(t *testing.T) {
	var m state
	old, young := service(world.Key{Namespace: "shop", Name: "old"}, 0), service(web, 1)
	ours := m.decide(small(3, old)).allocation.Services[old.Key].Addrs
	young.Assigned, young.Given = ours, ours
	got := m.decide(small(3, old, young)).allocation.Services
	if !slices.Equal(got[web].Addrs, ours) || len(got[old.Key].Addrs) != 1 || slices.Equal(got[old.Key].Addrs, ours) {
		t.Errorf("the young one, whose status shows %v, has %v, the old one %v", ours, got[web].Addrs, got[old.Key].Addrs)
	}
}

// A UDP server on its node's own network may reply from another address. Only the user can know whether it does.
func TestUDPHostBackendsAreReported(t *testing.T) {
	b := func(addr string, host bool) plan.Backend {
		return plan.Backend{Addr: netip.MustParseAddrPort(addr), Node: "n1", Host: host}
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
