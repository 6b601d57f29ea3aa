// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// counted returns Facts and the counter of their wakeups.
func counted() (*Facts, *atomic.Int64) {
	var wakes atomic.Int64
	return NewFacts(convert.Options{DefaultClass: true}, Hooks{
		Wake:     func() { wakes.Add(1) },
		Changed:  func(world.Key) {},
		Expected: func(_ world.Key, addrs []netip.Addr) bool { return len(addrs) == 1 && addrs[0].String() == "10.0.0.1" },
	}), &wakes
}

func snapshot(f *Facts) *world.Snapshot {
	w, _ := f.Snapshot(world.Cluster{})
	return w
}

func serviceOf(kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"},
		Spec:       corev1.ServiceSpec{Type: kind},
	}
}

func endpointsAt(name, addr string) *endpoints {
	return keepEndpoints(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{addr}}},
	})
}

func TestOtherServicesCauseNoWakeup(t *testing.T) {
	f, wakes := counted()
	f.setService(nil, serviceOf(corev1.ServiceTypeClusterIP))
	f.setEndpoints(nil, endpointsAt("web-1", "10.244.0.1"))
	if int(wakes.Load()) != 0 || len(snapshot(f).Services) != 0 {
		t.Errorf("a ClusterIP Service: %d wakes, %d in the snapshot", int(wakes.Load()), len(snapshot(f).Services))
	}
	f.setService(serviceOf(corev1.ServiceTypeClusterIP), serviceOf(corev1.ServiceTypeLoadBalancer))
	if got := snapshot(f).Services; int(wakes.Load()) != 1 || len(got) != 1 || len(got[0].Slices) != 1 {
		t.Errorf("became ours: %d wakes, %+v", int(wakes.Load()), got)
	}
}

func TestSnapshotsAreImmutable(t *testing.T) {
	f, _ := counted()
	f.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
	before := snapshot(f).Services[0]
	f.setEndpoints(nil, endpointsAt("web-1", "10.244.0.1"))
	f.setEndpoints(nil, endpointsAt("web-2", "10.244.0.2"))
	if len(before.Slices) != 0 {
		t.Error("a snapshot changed after it was taken")
	}
	f.setEndpoints(endpointsAt("web-1", "10.244.0.1"), nil)
	if got := snapshot(f).Services[0].Slices; len(got) != 1 || got[0].Endpoints[0].Addr.String() != "10.244.0.2" {
		t.Errorf("slices: %+v", got)
	}
}

// A kubelet can report the chassis of another node. Which of the two a status names must not change with each pass.
func TestNodesOfASnapshotAreInOrder(t *testing.T) {
	f, _ := counted()
	for i := range 20 {
		f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}})
	}
	if got := snapshot(f).Nodes; !slices.IsSortedFunc(got, func(a, b *world.Node) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		t.Error("the order of the nodes is random")
	}
}

func TestEndpointSliceCanChangeService(t *testing.T) {
	f, _ := counted()
	f.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
	old := endpointsAt("web-1", "10.244.0.1")
	f.setEndpoints(nil, old)
	moved := *old
	moved.service.Name = "other"
	f.setEndpoints(old, &moved)
	if got := snapshot(f).Services[0].Slices; len(got) != 0 {
		t.Errorf("slices: %+v", got)
	}
}

func TestHeartbeatsCauseNoWakeup(t *testing.T) {
	f, wakes := counted()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"rack": "r1"}}}
	f.setNode(nil, node)
	beat := node.DeepCopy()
	beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	f.setNode(node, beat)
	if int(wakes.Load()) != 1 {
		t.Errorf("%d wakes after a heartbeat, want 1", int(wakes.Load()))
	}
	moved := beat.DeepCopy()
	moved.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	moved.Labels["rack"] = "r2"
	f.setNode(beat, moved)
	if int(wakes.Load()) != 2 {
		t.Errorf("%d wakes after another label, want 2", int(wakes.Load()))
	}
	for i, annotations := range []map[string]string{
		{"slb.k8s.ovn.org/drain": "new disks"},
		{"k8s.ovn.org/l3-gateway-config": `{"default":{"mode":"shared","bridge-id":"br-ex"}}`},
		{"k8s.ovn.org/host-cidrs": `["192.0.2.1/24"]`},
		{"k8s.ovn.org/host-cidrs": `["192.0.2.1/25"]`},
		{"k8s.ovn.org/host-cidrs": `["192.0.2.1/25"]`, "k8s.ovn.org/node-masquerade-subnet": `{"ipv4":"169.254.169.0/29"}`},
		{"k8s.ovn.org/host-cidrs": `["192.0.2.1/25"]`, "k8s.ovn.org/node-masquerade-subnet": `{"ipv4":"169.254.0.0/17"}`},
	} {
		next := moved.DeepCopy()
		next.Annotations = annotations
		f.setNode(moved, next)
		if int(wakes.Load()) != i+3 {
			t.Errorf("%d wakes after annotations %v, want %d", int(wakes.Load()), annotations, i+3)
		}
		moved = next
	}
}

func TestSelectorsFollowLabels(t *testing.T) {
	f, _ := counted()
	f.setDomain(nil, &v1alpha1.L2Domain{
		ObjectMeta: metav1.ObjectMeta{Name: "rack"},
		Spec: v1alpha1.L2DomainSpec{
			NodeSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"rack": "r1"}}},
		},
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	f.setNode(nil, node)
	if got := snapshot(f).Domains[0].Nodes; len(got) != 0 {
		t.Errorf("nodes: %v", got)
	}
	labelled := node.DeepCopy()
	labelled.Labels = map[string]string{"rack": "r1"}
	f.setNode(node, labelled)
	if got := snapshot(f).Domains[0].Nodes; len(got) != 1 {
		t.Errorf("nodes: %v", got)
	}
}

// A request to move shards is an annotation, which does not change the generation of the L2Domain.
func TestMoveRequestWakes(t *testing.T) {
	f, wakes := counted()
	domain := &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	f.setDomain(nil, domain)
	steps := []struct {
		annotations map[string]string
		status      *v1alpha1.MoveStatus
		wakes       int32
		want        *world.MoveRequest
	}{
		{map[string]string{"example.com/other": "1"}, nil, 1, nil},
		{map[string]string{v1alpha1.AnnotationMove: ""}, nil, 2,
			&world.MoveRequest{Problem: ` is not of the form {"node":"NODE","shards":[INDEX]}`}},
		{map[string]string{v1alpha1.AnnotationMove: `{"node":"n2","shards":[7]}`}, nil, 3,
			&world.MoveRequest{Text: `{"node":"n2","shards":[7]}`, Node: "n2", Shards: []int{7}}},
		{map[string]string{v1alpha1.AnnotationMove: `{"node":"n2","shards":[7]}`},
			&v1alpha1.MoveStatus{Request: `{"node":"n2","shards":[7]}`, State: v1alpha1.MoveCompleted}, 4,
			&world.MoveRequest{Text: `{"node":"n2","shards":[7]}`, Node: "n2", Shards: []int{7}}},
		{nil, nil, 5, nil},
	}
	for i, step := range steps {
		next := domain.DeepCopy()
		next.Annotations, next.Status.Move = step.annotations, step.status
		f.setDomain(domain, next)
		if got := wakes.Load(); int32(got) != step.wakes {
			t.Errorf("step %d: %d wakes, want %d", i, got, step.wakes)
		}
		got := snapshot(f).Domains[0]
		if d := cmp.Diff(step.want, got.Move); d != "" {
			t.Errorf("step %d (-want +got):\n%s", i, d)
		}
		if m := step.status; m != nil && got.Moved != (world.MoveResult{Text: m.Request, State: world.MoveCompleted}) {
			t.Errorf("step %d: %+v", i, got.Moved)
		}
		domain = next
	}
}

func TestOwnWritesCauseNoWakeup(t *testing.T) {
	f, wakes := counted()
	s := serviceOf(corev1.ServiceTypeLoadBalancer)
	f.setService(nil, s)
	echo := s.DeepCopy()
	echo.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1"}}
	f.setService(s, echo)
	if int(wakes.Load()) != 1 {
		t.Errorf("%d wakes after the echo, want 1", int(wakes.Load()))
	}
	if got := snapshot(f).Services[0].Assigned; len(got) != 1 {
		t.Errorf("assigned: %v", got)
	}
	spoilt := echo.DeepCopy()
	spoilt.Status.LoadBalancer.Ingress[0].IP = "10.0.0.2"
	f.setService(echo, spoilt)
	if int(wakes.Load()) != 2 {
		t.Errorf("%d wakes after another address, want 2", int(wakes.Load()))
	}
	asked := spoilt.DeepCopy()
	asked.Annotations = map[string]string{v1alpha1.AnnotationAddressPool: "lan"}
	f.setService(spoilt, asked)
	if int(wakes.Load()) != 3 {
		t.Errorf("%d wakes after another request, want 3", int(wakes.Load()))
	}
	moved := asked.DeepCopy()
	moved.Status.LoadBalancer.Ingress[0].IP = "10.0.0.1"
	f.setService(asked, moved)
	if int(wakes.Load()) != 4 {
		t.Errorf("%d wakes after our write freed an address, want 4", int(wakes.Load()))
	}
	named := moved.DeepCopy()
	named.Status.LoadBalancer.Ingress = append(named.Status.LoadBalancer.Ingress,
		corev1.LoadBalancerIngress{Hostname: "lb.example.org"})
	f.setService(moved, named)
	if int(wakes.Load()) != 5 {
		t.Errorf("%d wakes after a host name, want 5", int(wakes.Load()))
	}
}

// A label that comes or goes later counts for nothing: OVN-Kubernetes admits that of nobody, but any node may write it.
func TestNamespaceWithPrimaryNetworkCausesWakeup(t *testing.T) {
	f, wakes := counted()
	namespace := func(labels ...string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"tier": "tin"}}}
		for _, l := range labels {
			n.Labels[l] = ""
		}
		return n
	}
	plain, own, recreated := namespace(), namespace("k8s.ovn.org/primary-user-defined-network"), namespace()
	recreated.UID = "2"
	for i, step := range []struct {
		old, now *corev1.Namespace
		wakes    int
		primary  bool
	}{
		{nil, plain, 0, false}, {plain, own, 0, false}, {own, nil, 0, false}, {nil, own, 1, true},
		{own, namespace("x", "k8s.ovn.org/primary-user-defined-network"), 1, true}, {own, plain, 1, true},
		{plain, recreated, 2, false}, {recreated, nil, 2, false}, {nil, own, 3, true}, {own, nil, 4, false},
	} {
		f.setNamespace(step.old, step.now)
		if got := snapshot(f).PrimaryNetworks["shop"]; got != step.primary || int(wakes.Load()) != step.wakes {
			t.Errorf("step %d: primary network %t after %d wakes, want %t after %d", i, got, wakes.Load(), step.primary,
				step.wakes)
		}
	}
}

func TestNamespaceSelectedByPoolCausesWakeup(t *testing.T) {
	f, wakes := counted()
	namespace := func(name, tier string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
	}
	f.setNamespace(nil, namespace("bank", "gold"))
	f.setPool(nil, &v1alpha1.IPAddressPool{
		ObjectMeta: metav1.ObjectMeta{Name: "fenced"},
		Spec: v1alpha1.IPAddressPoolSpec{ServiceAllocation: &v1alpha1.ServiceAllocation{
			NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "gold"}}},
		}},
	})
	admitted := func() []string { return snapshot(f).Pools[0].Admission.Namespaces }
	if got := admitted(); !slices.Equal(got, []string{"bank"}) || int(wakes.Load()) != 1 {
		t.Fatalf("the pool serves %v after %d wakes", got, int(wakes.Load()))
	}
	f.setNamespace(nil, namespace("shop", "tin"))
	if int(wakes.Load()) != 1 {
		t.Error("a namespace that no pool selects wakes")
	}
	f.setNamespace(namespace("shop", "tin"), namespace("shop", "gold"))
	f.setNamespace(namespace("bank", "gold"), nil)
	if got := admitted(); !slices.Equal(got, []string{"shop"}) || int(wakes.Load()) != 3 {
		t.Errorf("the pool serves %v after %d wakes", got, int(wakes.Load()))
	}
}

// A tenant can create Services of a megabyte that are not ours. What is written or served is stored as it is.
func TestOnlyServicesWithOurStatusAreStoredWhole(t *testing.T) {
	f, _ := counted()
	large := func(kind corev1.ServiceType) *corev1.Service {
		s := serviceOf(kind)
		s.ResourceVersion, s.Labels, s.Annotations = "7", map[string]string{"a": "b"}, map[string]string{"c": "d"}
		s.Spec.ExternalIPs = slices.Repeat([]string{"10.0.0.1"}, 1000)
		s.Spec.Ports, s.Spec.Selector = make([]corev1.ServicePort, 1000), map[string]string{"e": "f"}
		return s
	}
	now, other := metav1.Now(), "example.com/lb"
	left, deleted, foreign := large(corev1.ServiceTypeClusterIP), large(corev1.ServiceTypeLoadBalancer),
		large(corev1.ServiceTypeLoadBalancer)
	left.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue}}
	deleted.DeletionTimestamp = &now
	foreign.Spec.LoadBalancerClass = &other
	for name, test := range map[string]struct {
		object *corev1.Service
		whole  bool
	}{
		"of type LoadBalancer":      {large(corev1.ServiceTypeLoadBalancer), true},
		"of another type":           {large(corev1.ServiceTypeClusterIP), false},
		"of another class":          {foreign, false},
		"being deleted":             {deleted, false},
		"that still has our status": {left, true},
	} {
		kept := f.keepService(test.object)
		if test.whole != (kept == test.object) {
			t.Errorf("a Service %s is stored whole: %v, want %v", name, kept == test.object, test.whole)
		}
		if len(kept.Spec.ExternalIPs)+len(kept.Spec.Ports)+len(kept.Labels) > 0 && !test.whole {
			t.Errorf("a Service %s is stored with %+v", name, kept)
		}
		if again := f.keepService(kept); !cmp.Equal(kept, again) || f.IsManaged(kept) != f.IsManaged(test.object) ||
			kept.UID != "1" || kept.ResourceVersion != "7" {
			t.Errorf("a Service %s, stored again: %s", name, cmp.Diff(kept, again))
		}
	}
}
