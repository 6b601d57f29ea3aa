// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A drain does not wait for shards that stay because all gateways drain, unless something else still leaves the node.
// If no controller works, what is left says so.
func TestWhatADrainWaitsFor(t *testing.T) {
	domain := func(name, reason string, gateways ...string) *v1alpha1.L2Domain {
		d := &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: reason}}
		d.Status.Shards = []v1alpha1.ShardStatus{{Index: 2, Active: "n1", Gateways: gateways, Addresses: 3}}
		return d
	}
	all := domain("lan", v1alpha1.ReasonGatewaysDraining, "n1", "n2")
	alone := domain("dmz", v1alpha1.ReasonTooFewGateways, "n1")
	other := domain("wan", v1alpha1.ReasonReady, "n2", "n1")
	elsewhere := domain("wan", v1alpha1.ReasonReady, "n2", "n3")
	other.Status.Shards[0].Active, elsewhere.Status.Shards[0].Active = "n2", "n2"
	unknown := other.DeepCopy()
	unknown.Status.Conditions[0].Status, unknown.Status.Conditions[0].Reason = metav1.ConditionUnknown,
		v1alpha1.ReasonDatabaseUnreachable
	status := &v1alpha1.BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	status.Status.Sessions = []v1alpha1.BGPSession{{Peer: "tor", State: v1alpha1.BGPEstablished}}
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ovn-kubernetes", Name: "ovnkube-slb"}}
	leader.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-time.Minute)}
	leader.Spec.LeaseDurationSeconds = new(int32(15))
	leader.Spec.HolderIdentity = new("ovnkube-slb-7d4b9-x2x8z")
	const shard = "shard lan/2 with 3 addresses, all of whose gateways drain"
	for name, c := range map[string]struct {
		cluster objects.Objects
		left    string
		stays   bool
	}{
		"nothing":   {objects.Objects{}, "", false},
		"all drain": {objects.Objects{Domains: []*v1alpha1.L2Domain{all}}, shard, true},
		"one gateway": {objects.Objects{Domains: []*v1alpha1.L2Domain{alone}},
			"shard dmz/2 with 3 addresses, which has no other gateway", false},
		"a session, too": {objects.Objects{Domains: []*v1alpha1.L2Domain{all},
			NodeStatuses: []*v1alpha1.BGPNodeStatus{status}},
			shard + ", the session with BGPPeer tor", false},
		"no controller, nothing": {objects.Objects{Leader: leader}, "", false},
		"no controller": {objects.Objects{Domains: []*v1alpha1.L2Domain{alone}, Leader: leader},
			"shard dmz/2 with 3 addresses, which has no other gateway; Lease ovn-kubernetes/ovnkube-slb: no controller has " +
				"renewed it since 2026-01-01T00:00:00Z: statuses may be out of date", false},
		"no controller, another one is active": {objects.Objects{Domains: []*v1alpha1.L2Domain{other}, Leader: leader},
			"shard wan/2, whose active gateway is not known now; Lease ovn-kubernetes/ovnkube-slb: no controller has " +
				"renewed it since 2026-01-01T00:00:00Z: statuses may be out of date", false},
		"no controller, no gateway": {objects.Objects{Domains: []*v1alpha1.L2Domain{elsewhere}, Leader: leader}, "", false},
		"OVN is not reachable": {objects.Objects{Domains: []*v1alpha1.L2Domain{unknown}},
			"shard wan/2, whose active gateway is not known now (DatabaseUnreachable)", false},
		"another one is active": {objects.Objects{Domains: []*v1alpha1.L2Domain{other}}, "", false},
	} {
		if left, stays := remaining(&c.cluster, "n1", now); left != c.left || stays != c.stays {
			t.Errorf("%s: %q, %t; want %q, %t", name, left, stays, c.left, c.stays)
		}
	}
}

// A silent agent has not reported that its node released a shard: the node has not drained, whichever gateway the
// status names, unless its kubelet is silent as well.
func TestDrainWaitsForTheReleaseOfAShard(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	const silent = "; the agent of node n1 does not report (ovnkube-slb node --enable-l2), so its zone does not learn " +
		"that a shard moves, and may go on answering: restart the agent, or stop OVN there"
	for name, c := range map[string]struct {
		active, report string
		renewed        time.Time
		mode           world.ServingMode
		lost           bool
		left           string
	}{
		"silent and active": {"n1", `{"claims":{"lan/2":"2026-01-01T00:00:00Z"}}`, now.Add(-time.Minute),
			world.ServedByZones, false, "shard lan/2 with 3 addresses" + silent},
		"silent, and another one is active": {"n2", `{"claims":{"lan/2":"2026-01-01T00:00:00Z"}}`, now.Add(-time.Minute),
			world.ServedByZones, false, "shard lan/2, which its agent has not reported as released, of which n2 is the active " +
				"gateway now" + silent},
		"the node is lost": {"n2", `{"claims":{"lan/2":"2026-01-01T00:00:00Z"}}`, now.Add(-time.Minute),
			world.ServedByZones, true, ""},
		"not released yet": {"n2", `{"claims":{"lan/2":"2026-01-01T00:00:00Z"}}`, now, world.ServedByZones, false,
			"shard lan/2, which its agent has not reported as released, of which n2 is the active gateway now"},
		"released":     {"n2", `{}`, now, world.ServedByZones, false, ""},
		"central mode": {"n2", `{"claims":{"lan/2":"2026-01-01T00:00:00Z"}}`, now, world.ServedCentrally, false, ""},
	} {
		d := &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
		d.Status.Mode = string(c.mode)
		d.Status.Shards = []v1alpha1.ShardStatus{{Index: 2, Active: c.active, Gateways: []string{"n2", "n3"}, Addresses: 3}}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		if c.lost {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Annotations: map[string]string{v1alpha1.AnnotationZone: c.report}}}
		lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &metav1.MicroTime{Time: c.renewed}, new(int32(40))
		cluster := objects.Objects{Domains: []*v1alpha1.L2Domain{d}, Nodes: []*corev1.Node{n},
			Leases: []*coordinationv1.Lease{lease}}
		if left, stays := remaining(&cluster, "n1", now); left != c.left || stays {
			t.Errorf("%s: %q, %t; want %q", name, left, stays, c.left)
		}
	}
}

// While a drain waits, it reads what the node carries, and not the Services of the whole cluster.
func TestDrainPollsTheNodeOnly(t *testing.T) {
	s := drained(2, "n1", "n2")
	if out, err := s.run(t, "drain n1"); err != nil {
		t.Fatalf("error %v, output\n%s", err, out)
	}
	const ours = "/apis/slb.k8s.ovn.org/v1alpha1/"
	for path, want := range map[string][]string{
		"/api/v1/services":                              {""}, // the preview
		"/apis/discovery.k8s.io/v1/endpointslices":      {""},
		"/api/v1/namespaces":                            {""},
		"/api/v1/namespaces/ovn-kubernetes/pods":        {""},
		"/apis/k8s.ovn.org/v1/egressips":                {""},
		"/api/v1/nodes":                                 {"", "metadata.name=n1"},
		ours + "bgpnodestatuses":                        {"", "metadata.name=n1"},
		ours + "l2domains":                              {"", ""},
		"/apis/frrk8s.metallb.io/v1beta1/frrnodestates": {"", "metadata.name=n1"},
	} {
		if got := s.selected[path]; !slices.Equal(got, want) {
			t.Errorf("%s: read with the selectors %q, want %q", path, got, want)
		}
	}
}

// The host of an EgressService is the node with its label, and only Services that exist are named.
func TestDrainNamesEgressServices(t *testing.T) {
	service := func(namespace, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	}
	cluster := objects.Objects{Services: []*corev1.Service{service("shop", "mail"), service("shop", "web")}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Labels: map[string]string{egressLabel + "shop-web": "", egressLabel + "shop-gone": ""}}}
	const want = "Connections that pods open from the address of 1 Service go through node n1 (EgressService: " +
		"shop/web), and do not move: they end when it stops. Set spec.nodeSelector of the EgressService before, so that " +
		"OVN-Kubernetes selects another node."
	if got := throughHost(&cluster, n); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := throughHost(&cluster, &corev1.Node{}); got != "" {
		t.Errorf("a node that is no host: %q", got)
	}
}
