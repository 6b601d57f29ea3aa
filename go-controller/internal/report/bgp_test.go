// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// withBGP returns the snapshot of small with a peer for all nodes, an advertisement for all addresses, and the sessions
// of n1 and n2.
func withBGP(services ...*world.Service) *world.Snapshot {
	w := worldtest.Small(5, services...)
	nodes := []string{"n1", "n2", "n3"}
	w.Peers = []*world.Peer{{Name: "tor", Nodes: nodes, MyASN: 64512, PeerASN: 64513,
		Addr: netip.MustParseAddr("10.50.0.1"), Port: 179}}
	w.Advertisements = []*world.Advertisement{{Name: "all", Nodes: nodes, Pools: []string{"lan"}, EveryPool: true,
		Length4: 32, Length6: 128}}
	w.Sessions = map[string]map[string]world.PeerSession{
		"n1": {"tor": {Established: true}}, "n2": {"tor": {Established: true}},
		"n3": {"tor": {Problem: "hold timer expired"}},
	}
	for i, n := range w.Nodes {
		n.External = []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 0, byte(11 + i)})}
	}
	return w
}

func TestServiceStatusWithBGP(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		change func(*world.Snapshot)
		want   status.Verdict
	}{
		"by BGP alone": {func(w *world.Snapshot) { w.Domains = nil },
			status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
				Message: "address 10.50.0.100: advertised over BGP by nodes n1, n2 to BGPPeer tor"}},
		"outside of all subnets": {func(w *world.Snapshot) {
			w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.60.0.0/24")
		},
			status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
				Message: "address 10.50.0.100: advertised over BGP by nodes n1, n2 to BGPPeer tor"}},
		"by both": {func(*world.Snapshot) {},
			status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
				Message: "address 10.50.0.100 is announced by OVN on gateway n2 (L2Domain lan, shard 0); " +
					"address 10.50.0.100: advertised over BGP by nodes n1, n2 to BGPPeer tor"}},
		"restricted": {func(w *world.Snapshot) {
			w.Domains = nil
			w.Services[0].SourceRanges = convert.MergeRanges([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
		}, status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
			Message: "for traffic that enters through a node, spec.loadBalancerSourceRanges are up to OVN-Kubernetes"}},
		"no session, but OVN": {func(w *world.Snapshot) { w.Sessions = nil },
			status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
				Message: "is announced by OVN on gateway n2 (L2Domain lan, shard 0); " +
					"address 10.50.0.100: no BGP session is established, so the address is not advertised: nodes n1, n2, n3"}},
		"no session": {func(w *world.Snapshot) { w.Domains, w.Sessions["n1"], w.Sessions["n2"] = nil, nil, nil },
			status.Verdict{Status: no, Reason: v1alpha1.ReasonNoSession,
				Message: "address 10.50.0.100: no BGP session is established, so the address is not advertised: " +
					"nodes n1, n2, n3; node n3, BGPPeer tor: hold timer expired"}},
		"family not negotiated": {func(w *world.Snapshot) {
			w.Domains = nil
			for _, n := range []string{"n1", "n2"} {
				w.Sessions[n] = map[string]world.PeerSession{"tor": {Established: true, WithoutIPv4: true}}
			}
		}, status.Verdict{Status: no, Reason: v1alpha1.ReasonNoNodes,
			Message: "address 10.50.0.100: no BGP session carries IPv4, so the address is not advertised: nodes n1, n2, n3; " +
				"node n1, BGPPeer tor: IPv4 unicast was not negotiated with the peer"}},
		"family of others not negotiated": {func(w *world.Snapshot) {
			w.Domains = nil
			w.Sessions["n1"] = map[string]world.PeerSession{"tor": {Established: true, WithoutIPv6: true}}
			w.Sessions["n2"] = map[string]world.PeerSession{"tor": {Established: true, WithoutIPv4: true}}
		}, status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
			Message: "address 10.50.0.100: advertised over BGP by node n1 to BGPPeer tor"}},
		"all drain": {func(w *world.Snapshot) {
			w.Domains = nil
			for _, n := range w.Nodes {
				n.Draining = "label"
			}
		}, status.Verdict{Status: no, Reason: v1alpha1.ReasonNoNodes, Message: "no node can advertise the address over BGP"}},
		"no endpoints": {func(w *world.Snapshot) { w.Domains, w.Services[0].Slices = nil, nil },
			status.Verdict{Status: no, Reason: v1alpha1.ReasonNoEndpoints, Message: "no usable endpoint"}},
		"gateway unknown": {func(w *world.Snapshot) { w.Domains, w.Advertisements[0].ByGateway = nil, true },
			status.Verdict{Status: no, Reason: v1alpha1.ReasonNoGateway, Message: "nextHop: Gateway"}},
		"is the next hop": {func(w *world.Snapshot) {
			w.Advertisements[0].ByGateway = true
			w.Domains[0].Anchors = map[int][]netip.Addr{0: {netip.MustParseAddr("10.50.0.100")}}
		}, status.Verdict{Status: yes, Reason: v1alpha1.ReasonAnnounced,
			Message: "address 10.50.0.100: not advertised over BGP: it is itself the next hop of its shard"}},
		"advertisement without nodes": {func(w *world.Snapshot) {
			w.Domains = nil
			w.Advertisements[0].Nodes = nil
			w.Advertisements[0].Findings = []world.Finding{{Reason: v1alpha1.ReasonNoNodes, Fatal: true,
				Message: "spec.nodeSelectors: no node matches"}}
		}, status.Verdict{Status: no, Reason: v1alpha1.ReasonNoNodes,
			Message: `10.50.0.100: no L2Domain has pool "lan", and BGPAdvertisement all, which selects it, has no effect: ` +
				"spec.nodeSelectors: no node matches"}},
		"advertisement without effect, of other Services": {func(w *world.Snapshot) {
			w.Domains = nil
			w.Advertisements[0].Services = []world.Selector{{{Key: "app", Values: []string{"other"}}}}
			w.Advertisements[0].Findings = []world.Finding{{Reason: v1alpha1.ReasonNoNodes, Fatal: true}}
		}, status.Verdict{Status: no, Reason: v1alpha1.ReasonNoDomain, Message: "and no BGPAdvertisement selects it"}},
		"not taken": {func(w *world.Snapshot) { w.Domains, w.Advertisements[0].Pools = nil, nil },
			status.Verdict{Status: no, Reason: v1alpha1.ReasonNoDomain, Message: `no L2Domain has pool "lan"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withBGP(worldtest.Service(web, 1))
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2", Settled: true}}
			test.change(w)
			var m decide.State
			d := m.Decide(w)
			v := NewBuilder(d, Observed{Synced: true, Programmed: map[world.Key]loop.Result{web: {Key: web,
				Plan: d.Plans[web]}}})
			got := v.announced(w.Services[0])
			if got == nil || got.Status != test.want.Status || got.Reason != test.want.Reason ||
				!strings.Contains(got.Message, test.want.Message) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// An address that is advertised only by BGP does not wait for OVN, and its pool is ready.
func TestBGPAloneNeedsNoDataplane(t *testing.T) {
	w := withBGP(worldtest.Service(web, 1))
	w.Cluster.NoDatabase = true
	var m decide.State
	v := NewBuilder(m.Decide(w), Observed{})
	if got := v.announced(w.Services[0]); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("the verdict is %+v", got)
	}
	if way := v.announcedFor(w.Pools[0]); way.Status != metav1.ConditionTrue {
		t.Errorf("the pool's way is %+v", way)
	}
}

// The condition of a pool names the advertisement that selects it and has no effect.
func TestPoolNamesAdvertisementWithoutEffect(t *testing.T) {
	w := withBGP()
	w.Domains = nil
	w.Advertisements[0].Findings = []world.Finding{{Reason: v1alpha1.ReasonPeerNotFound, Fatal: true,
		Message: "spec.peers: tro: no such BGPPeer"}}
	var m decide.State
	v := NewBuilder(m.Decide(w), Observed{Synced: true})
	const want = `addresses of the pool are not announced: no L2Domain has pool "lan", and BGPAdvertisement all, which ` +
		"selects it, has no effect: spec.peers: tro: no such BGPPeer"
	if got := v.announcedFor(w.Pools[0]); got.Reason != v1alpha1.ReasonNoDomain || got.Message != want {
		t.Errorf("the verdict is %+v, want the message %q", got, want)
	}
}

// An advertisement with the gateway as next hop advertises nothing without a gateway.
func TestPoolOfBGPNodesIsNotReadyWithoutThem(t *testing.T) {
	w := withBGP(worldtest.Service(web, 1))
	w.Cluster.NoDatabase, w.Advertisements[0].ByGateway = true, true
	var m decide.State
	v := NewBuilder(m.Decide(w), Observed{})
	if way := v.announcedFor(w.Pools[0]); way.Status != metav1.ConditionFalse || way.Reason != v1alpha1.ReasonUnsupported {
		t.Errorf("the pool's way is %+v, want it to be Unsupported", way)
	}
}

// In a large cluster, a session that comes up or goes down rewrites no status.
func TestLongNodeListsAreTruncated(t *testing.T) {
	w := withBGP(worldtest.Service(web, 1))
	w.Domains = nil
	for i := 4; i <= 20; i++ {
		n := fmt.Sprintf("n%d", i)
		w.Nodes = append(w.Nodes, &world.Node{Name: n, External: w.Nodes[0].External})
		w.Peers[0].Nodes = append(w.Peers[0].Nodes, n)
		w.Sessions[n] = map[string]world.PeerSession{"tor": {Established: true}}
	}
	w.Advertisements[0].Nodes = w.Peers[0].Nodes
	slices.Sort(w.Peers[0].Nodes)
	var last Cache
	var m decide.State
	first := NewBuilder(m.Decide(w), Observed{Synced: true}).Services(&last)[web]
	w.Sessions["n7"] = nil
	if again := NewBuilder(m.Decide(w), Observed{Synced: true}).Services(&last)[web]; again != first {
		t.Errorf("the status is %+v now, was %+v", again.Announced, first.Announced)
	}
	w.Sessions = nil
	if down := NewBuilder(m.Decide(w),
		Observed{Synced: true}).Services(&last)[web]; down.Announced.Reason != v1alpha1.ReasonNoSession {
		t.Errorf("without sessions the status is %+v", down.Announced)
	}
}

// Expired reports do not count for an address, and the objects of the silent nodes show that.
func TestSilentNodes(t *testing.T) {
	w := withBGP(worldtest.Service(web, 1))
	w.Domains = nil
	for _, n := range []string{"n1", "n2", "n3"} {
		w.Sessions[n] = map[string]world.PeerSession{"tor": {Unknown: true, Problem: "its kubelet is silent"}}
	}
	var last Cache
	var m decide.State
	v := NewBuilder(m.Decide(w), Observed{Synced: true})
	if is := v.Services(&last)[web].Announced; is.Status != metav1.ConditionUnknown ||
		is.Reason != v1alpha1.ReasonNodeSilent || !strings.Contains(is.Message, "its kubelet is silent") {
		t.Errorf("the Service: %+v", is)
	}
	if is := v.BGPObjects().Silent["n2"][v1alpha1.ConditionReady]; is.Status != metav1.ConditionUnknown ||
		is.Reason != v1alpha1.ReasonNodeSilent {
		t.Errorf("the BGPNodeStatus: %+v", is)
	}
}

// The sessions of nodes that report none are down. A peer that needs none has no counts.
func TestSessionsAreCountedByState(t *testing.T) {
	w := withBGP()
	w.Peers = append(w.Peers, &world.Peer{Name: "spine", Nodes: []string{"n1", "n2"}, MyASN: 64512, PeerASN: 64514,
		Addr: netip.MustParseAddr("10.50.0.2"), Port: 179}, &world.Peer{Name: "nobody", MyASN: 64512, PeerASN: 64515,
		Addr: netip.MustParseAddr("10.50.0.3"), Port: 179})
	w.Sessions["n2"] = map[string]world.PeerSession{"tor": {Unknown: true, Problem: "its kubelet is silent"}}
	var m decide.State
	got := NewBuilder(m.Decide(w), Observed{Synced: true}).SessionCounts()
	want := map[string]SessionCounts{"tor": {Established: 1, Down: 1, Unknown: 1}, "spine": {Down: 2}}
	if !maps.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPeersAreReadyWithAllSessions(t *testing.T) {
	silent := map[string]world.PeerSession{"tor": {Unknown: true, Problem: "its kubelet is silent"}}
	for name, test := range map[string]struct {
		change func(*world.Snapshot)
		want   status.Verdict
	}{
		"one lacks": {func(*world.Snapshot) {},
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSessionsDown,
				Message: "no session on 1 of 3 nodes: n3; node n3: hold timer expired"}},
		"it drains": {func(w *world.Snapshot) { w.Nodes[2].Draining = "label" },
			status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
				Message: "established session on 2 nodes"}},
		"BFD does not work": {func(w *world.Snapshot) {
			w.Nodes[2].Draining = "label"
			w.Sessions["n2"] = map[string]world.PeerSession{"tor": {Established: true, BFDProblem: "another agent has the port"}}
		}, status.Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
			Message: "established session on 2 nodes; BFD does not work on 1 of 2 nodes: n2; " +
				"node n2: another agent has the port"}},
		"no node reports": {func(w *world.Snapshot) { w.Sessions = nil },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoSession,
				Message: "no established session on 3 nodes; node n1 has not reported a session: " +
					"does its BGP daemon run (ovnkube-slb node --enable-bgp)?"}},
		"silent": {func(w *world.Snapshot) {
			w.Sessions["n3"] = silent
		}, status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodeSilent,
			Message: "the state of the session on 1 of 3 nodes is unknown: n3; node n3: its kubelet is silent"}},
		"one lacks, others are silent": {func(w *world.Snapshot) {
			w.Sessions["n1"], w.Sessions["n2"] = silent, silent
		}, status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodeSilent,
			Message: "the state of the session on 2 of 3 nodes is unknown: n1, n2; " +
				"node n1: its kubelet is silent; no session on 1 of 3 nodes: n3; node n3: hold timer expired"}},
		"one has, one lacks, one is silent": {func(w *world.Snapshot) { w.Sessions["n2"] = silent },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSessionsDown,
				Message: "no session on 1 of 3 nodes: n3; " +
					"node n3: hold timer expired; the state of the session on 1 of 3 nodes is unknown: n2; node n2: its kubelet is " +
					"silent"}},
		"useless": {func(w *world.Snapshot) {
			w.Peers[0].Findings = []world.Finding{{Reason: v1alpha1.ReasonSecretNotFound, Fatal: true}}
		},
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid, Message: "the BGPPeer is invalid"}},
		"no nodes": {func(w *world.Snapshot) { w.Peers[0].Nodes = nil },
			status.Verdict{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoNodes}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withBGP()
			test.change(w)
			var m decide.State
			got := NewBuilder(m.Decide(w), Observed{Synced: true}).BGPObjects().Peers["tor"][v1alpha1.ConditionReady]
			if got.Status != test.want.Status || got.Reason != test.want.Reason ||
				!strings.Contains(got.Message, test.want.Message) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}
