// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func node(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		"k8s.ovn.org/node-chassis-id": "chassis-" + name, "k8s.ovn.org/zone-name": zone}}}
}

// servicePlan returns a plan with an address in shard lan/0 and one in a shard of its own.
func servicePlan(name string, version int, shard int32) *v1alpha1.ServicePlan {
	return &v1alpha1.ServicePlan{
		ObjectMeta: metav1.ObjectMeta{Name: "shop." + name, ResourceVersion: strconv.Itoa(version)},
		Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: name,
			VIPs: []v1alpha1.PlannedVIP{{Address: "10.50.0.100", L2Domain: "lan"},
				{Address: "10.50.0.101", L2Domain: "lan", Shard: shard}},
			Listeners: []v1alpha1.PlannedListener{{Address: "10.50.0.100", Protocol: "TCP", Port: 80},
				{Address: "10.50.0.101", Protocol: "TCP", Port: 80}}}}
}

// small returns what is published in a cluster of two zones with shard lan/0.
func small() *published {
	p := newPublished(subnets("10.244.0.0/16"))
	p.setNode(nil, node("n1", "n1"))
	p.setNode(nil, node("n2", "n2"))
	p.setDomain(nil, &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: "lan"},
		Spec: v1alpha1.L2DomainSpec{PhysicalNetwork: "physnet", Subnets: []v1alpha1.Subnet{{CIDR: "10.50.0.0/24"}}},
		Status: v1alpha1.L2DomainStatus{Shards: []v1alpha1.ShardStatus{
			{Index: 0, Ordinal: new(int32(5)), Gateways: []string{"n2", "gone", "n1"}, Anchors: []string{"10.50.0.100"}},
			{Index: 1, Gateways: []string{"n1"}, Anchors: []string{"10.50.0.101"}}, // not published yet: no ordinal
		}}})
	return &p
}

func TestNothingIsProgrammedOutsideTheOwnZone(t *testing.T) {
	for name, change := range map[string]func(*published){
		"one zone for the cluster": func(p *published) {
			p.setNode(nil, node("n1", "global"))
			p.setNode(nil, node("n2", "global"))
		},
		"a zone of several nodes": func(p *published) { p.setNode(nil, node("n1", "rack1")) },
		"the zone of another":     func(p *published) { p.setNode(nil, node("n1", "n2")) },
		"no cluster subnets":      func(p *published) { p.clusterSubnets = nil },
		"no node":                 func(p *published) { p.setNode(node("n1", "n1"), nil) },
	} {
		p := small()
		change(p)
		if f, _, ok := p.desired("n1", world.Cluster{}, nil); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// While most nodes are in one zone, its database is or will be programmed by the controller, and the zones of single
// nodes must have nothing: two gateways would answer.
func TestZonesAreEmptyUnlessTheClusterIsServedByZones(t *testing.T) {
	p := small()
	p.setPlan(nil, servicePlan("web", 4, 0))
	p.setNode(nil, node("n3", "global"))
	p.setNode(nil, node("n4", "global"))
	if f, plans, ok := p.desired("n1", world.Cluster{}, nil); !ok || len(f.Domains) == 0 || len(plans) == 0 {
		t.Fatalf("half of the nodes have zones of their own: %t, %+v, %v", ok, f, plans)
	}
	p.setNode(nil, node("n2", "global"))
	for range 2 { // also after a change of a plan alone
		f, plans, ok := p.desired("n1", world.Cluster{}, nil)
		if !ok || len(f.Domains) > 0 || len(plans) > 0 || f.Zone == nil {
			t.Errorf("%t, %+v, %v", ok, f, plans)
		}
		p.setPlan(nil, servicePlan("web", 5, 0))
		if _, only := p.changes(); only {
			t.Error("a changed plan is applied")
		}
	}
}

func subnets(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// Aliases depend on the cluster subnets and their order. Without a Network, what OVN has stays in force.
func TestClusterSubnetsOfOpenShiftReplaceTheLastOnes(t *testing.T) {
	p := small()
	p.clusterSubnets = nil
	network := func(cidrs ...any) *unstructured.Unstructured {
		var nets []any
		for _, cidr := range cidrs {
			nets = append(nets, map[string]any{"cidr": cidr})
		}
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"clusterNetwork": nets}}}
	}
	for i, step := range []struct {
		network *unstructured.Unstructured
		changed bool
		want    []netip.Prefix
	}{
		{network(), false, nil},
		{network("10.128.0.0/14", "fd01::/48"), true, subnets("10.128.0.0/14", "fd01::/48")},
		{network("10.128.0.0/14", "fd01::/48"), false, subnets("10.128.0.0/14", "fd01::/48")},
		{nil, false, subnets("10.128.0.0/14", "fd01::/48")},
		{network(), false, subnets("10.128.0.0/14", "fd01::/48")},
		{network("10.128.0.0/13"), true, subnets("10.128.0.0/13")},
	} {
		p.whole = false
		changed := p.setNetwork(step.network)
		f, _, ok := p.desired("n1", world.Cluster{}, nil)
		if changed != step.changed || ok != (step.want != nil) || ok && !slices.Equal(f.Cluster.ClusterSubnets, step.want) {
			t.Errorf("step %d: changed %t, %+v, %t", i, changed, f, ok)
		}
	}
}

func TestShardsAreThoseOfTheStatus(t *testing.T) {
	f, _, ok := small().desired("n1", world.Cluster{ID: "3f9a"}, nil)
	if !ok || len(f.Domains) != 1 {
		t.Fatalf("%v %+v", ok, f)
	}
	want := []plan.Shard{{ID: world.ShardID{Domain: "lan"}, Ordinal: 5,
		Gateways: []plan.Gateway{{Node: "n2", Chassis: "chassis-n2"}, {Node: "n1", Chassis: "chassis-n1"}},
		Anchors:  []netip.Prefix{netip.MustParsePrefix("10.50.0.100/24")}}}
	if diff := cmp.Diff(want, f.Domains[0].Shards, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A plan and the status of its domain are read independently. The addresses that already work must continue to work.
// On the bridge of OVN-Kubernetes' own gateway, a node that is no longer selected has the port until its shards moved.
func TestGatewayThatIsNoLongerSelectedKeepsItsPort(t *testing.T) {
	p := small()
	own := node("n1", "n1")
	own.Annotations["k8s.ovn.org/l3-gateway-config"] = `{"default":{"mode":"shared","bridge-id":"br-ex",` +
		`"mac-address":"0a:00:00:00:00:01","ip-addresses":["10.50.0.1/24"],"next-hops":["10.50.0.254"]}}`
	p.setNode(nil, own)
	residents := func(gateways ...string) []string {
		d := p.domains["lan"].DeepCopy()
		d.Spec.NodeSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"no": "node"}}}
		d.Status.Shards = d.Status.Shards[:1]
		d.Status.Shards[0].Gateways = gateways
		p.setDomain(nil, d)
		f, _, _ := p.desired("n1", world.Cluster{}, world.Bridges{"physnet": "br-ex"})
		return f.Domains[0].Residents
	}
	if got := residents("n1", "n2"); !slices.Equal(got, []string{"chassis-n1"}) {
		t.Errorf("as a gateway: %v", got)
	}
	if got := residents("n2"); len(got) > 0 {
		t.Errorf("afterwards: %v", got)
	}
}

func TestAddressesOfUnpublishedShardsWait(t *testing.T) {
	p := small()
	p.setPlan(nil, servicePlan("web", 4, 1))
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	web := plans[world.Key{Namespace: "shop", Name: "web"}]
	if web == nil || len(web.VIPs) != 1 || web.VIPs[0].Addr.String() != "10.50.0.100" || len(web.Listeners) != 1 {
		t.Errorf("plan %+v", web)
	}
	applied, failed := p.progress("n1", map[world.Key]loop.Result{web.Key: {Plan: web}})
	if applied != 3 || len(failed) > 0 {
		t.Errorf("applied up to %d, failed %v; want up to 3", applied, failed)
	}
}

// The zone of a gateway must not seem to have applied a plan because it did not know that it is its gateway.
func TestPlansOfUnpublishedShardsAreNotApplied(t *testing.T) {
	p := small()
	early := servicePlan("early", 4, 1)
	early.Spec.VIPs = early.Spec.VIPs[1:] // only the address in the shard that is not published
	p.setPlan(nil, early)
	p.setPlan(nil, servicePlan("web", 5, 0))
	_, plans, _ := p.desired("n2", world.Cluster{}, nil)
	results := map[world.Key]loop.Result{}
	for key, plan := range plans {
		results[key] = loop.Result{Key: key, Plan: plan}
	}
	if applied, _ := p.progress("n2", results); applied != 3 {
		t.Errorf("applied up to %d, want 3", applied)
	}
}

func TestProgressNamesWhatFailedAndClaimsNothingElse(t *testing.T) {
	p := small()
	for name, version := range map[string]int{"a": 10, "b": 20, "c": 30} {
		p.setPlan(nil, servicePlan(name, version, 0))
	}
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	result := func(name string, err error) (world.Key, loop.Result) {
		key := world.Key{Namespace: "shop", Name: name}
		return key, loop.Result{Key: key, Plan: plans[key], Err: err}
	}
	results := map[world.Key]loop.Result{}
	check := func(want uint64, failed map[world.Key]string) {
		t.Helper()
		applied, got := p.progress("n1", results)
		if diff := cmp.Diff(failed, got); applied != want || diff != "" {
			t.Errorf("applied up to %d, want %d; failed: -want +got:\n%s", applied, want, diff)
		}
	}
	none := map[world.Key]string{}
	check(9, none)
	for _, name := range []string{"a", "c"} {
		key, r := result(name, nil)
		results[key] = r
	}
	check(19, none)
	key, r := result("b", errors.New("no room"))
	results[key] = r
	check(30, map[world.Key]string{key: "no room"})
	p.setPlan(nil, servicePlan("a", 40, 0)) // the same plan again
	check(40, map[world.Key]string{key: "no room"})
	if applied, _ := p.progress("n3", results); applied != 0 {
		t.Errorf("n3 is no gateway and reports %d", applied)
	}
	changed := servicePlan("c", 50, 0)
	changed.Spec.SessionAffinity = v1alpha1.SessionAffinityClientIP
	p.setPlan(nil, changed)
	check(49, map[world.Key]string{key: "no room"})
}

// A ServicePlan that can't be decoded is no removal: the last good one stays in force, and the problem is reported.
func TestUnreadablePlanKeepsTheLastGoodOne(t *testing.T) {
	p := small()
	key := world.Key{Namespace: "shop", Name: "web"}
	broken := func(version int) *v1alpha1.ServicePlan {
		o := servicePlan("web", version, 0)
		o.Spec.VIPs[0].Address = "x"
		return o
	}
	p.setPlan(nil, broken(4))
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	if _, stays := p.unread[key]; !stays || len(p.unread) > 1 || len(plans) > 0 {
		t.Errorf("unreadable from the start: %v, plans %v", p.unread, plans)
	}
	p.setPlan(nil, broken(5))
	if got, ok := p.changes(); !ok || len(got) > 0 {
		t.Errorf("still unreadable: %t, changes %v", ok, got)
	}
	p.setPlan(nil, servicePlan("web", 6, 0))
	good, _ := p.changes()
	if good[key] == nil {
		t.Fatalf("readable: changes %v", good)
	}
	for version := range 2 {
		p.setPlan(nil, broken(7+version))
		if got, ok := p.changes(); !ok || !plan.Equal(got[key], good[key]) {
			t.Errorf("unreadable: %t, changes %v", ok, got)
		}
	}
	p.whole = true
	if _, got, _ := p.desired("n1", world.Cluster{}, nil); !plan.Equal(got[key], good[key]) || len(p.unread) > 0 {
		t.Errorf("unreadable, as a whole: %v, unread %v", got, p.unread)
	}
	applied, failed := p.progress("n1", map[world.Key]loop.Result{key: {Key: key, Plan: good[key]}})
	if applied != 8 || !strings.Contains(failed[key], `address "x"`) {
		t.Errorf("applied up to %d, failed %v", applied, failed)
	}
	p.setPlan(broken(8), nil)
	if got, ok := p.changes(); !ok || len(got) != 1 || got[key] != nil {
		t.Errorf("deleted: %t, changes %v", ok, got)
	}
}

// Changes of single plans and a whole result lead to the same plans.
func TestChangesEqualTheWhole(t *testing.T) {
	p, whole := small(), small()
	if _, ok := p.changes(); ok {
		t.Fatal("changes without a whole result before")
	}
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	both := func(do func(*published)) {
		do(p)
		do(whole)
	}
	for i, step := range []struct {
		do func(*published)
		ok bool
	}{
		{func(p *published) { p.setPlan(nil, servicePlan("web", 5, 0)) }, true},
		{func(p *published) { p.setPlan(nil, servicePlan("api", 6, 1)) }, true}, // awaits its second shard
		{func(p *published) { p.setPlan(nil, servicePlan("web", 7, 1)); p.setPlan(nil, servicePlan("api", 8, 0)) }, true},
		{func(*published) {}, true},
		{func(p *published) {
			broken := servicePlan("web", 9, 0)
			broken.Spec.VIPs[0].Address = "x"
			p.setPlan(nil, broken)
		}, true},
		{func(p *published) { p.setPlan(nil, servicePlan("web", 10, 0)) }, true},
		{func(p *published) { p.setPlan(servicePlan("api", 8, 0), nil) }, true},
		{func(p *published) {
			second := servicePlan("web", 11, 1) // not the plan of the Service
			second.Name = "other"
			p.setPlan(nil, second)
		}, true},
		{func(p *published) {
			edited := servicePlan("web", 12, 0) // by another client
			edited.Spec.Name = "other"
			p.setPlan(nil, edited)
		}, true},
		{func(p *published) { p.setPlan(nil, servicePlan("web", 13, 0)) }, true},
		{func(p *published) { p.setNode(nil, node("n3", "n3")) }, false},
		{func(p *published) { p.setDomain(p.domains["lan"], nil) }, false},
	} {
		both(step.do)
		changes, ok := p.changes()
		if ok != step.ok {
			t.Fatalf("step %d: only plans have changed: %t, want %t", i, ok, step.ok)
		}
		for key, of := range changes {
			if plans[key] = of; of == nil {
				delete(plans, key)
			}
		}
		if !ok {
			_, plans, _ = p.desired("n1", world.Cluster{}, nil)
		}
		_, want, _ := whole.desired("n1", world.Cluster{}, nil)
		if !maps.EqualFunc(plans, want, plan.Equal) {
			t.Errorf("step %d: plans %v, want %v", i, plans, want)
		}
	}
}

// A ServicePlan without the name of its Service changes nothing.
func TestSecondPlanOfServiceIsIgnored(t *testing.T) {
	p := small()
	p.setPlan(nil, servicePlan("web", 5, 0))
	_, before, _ := p.desired("n1", world.Cluster{}, nil)
	second := servicePlan("web", 6, 0)
	second.Name, second.Spec.VIPs = "other", nil
	if p.setPlan(nil, second) || p.setPlan(second, nil) {
		t.Error("the agent wakes up")
	}
	p.whole = true
	if _, got, _ := p.desired("n1", world.Cluster{}, nil); len(got) != 1 || !maps.EqualFunc(got, before, plan.Equal) {
		t.Errorf("plans %v, want %v", got, before)
	}
}
