// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Plans are published and deleted, and agents apply them, at random. A snapshot with what ObserveReports adds equals
// one that is observed anew.
func TestObserveReportsEqualsObserve(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	p := New(Options{})
	shard := world.ShardID{Domain: "lan"}
	agents := map[string]*world.ZoneAgent{
		"n1": {Claims: map[world.ShardID]time.Time{shard: time.Unix(1, 0)}, Failed: map[world.Key]string{
			{Namespace: "shop", Name: "3"}: "no room"}},
		"n2": {}}
	snapshot := func() *world.Snapshot {
		w := &world.Snapshot{Now: time.Unix(2, 0), Domains: []*world.Domain{{Name: "lan",
			Gateways: map[int][]string{0: {"n1", "n2"}, 1: {"n2", "n1"}, 2: {"deleted"}}}}}
		for _, name := range []string{"n1", "n2"} {
			w.Nodes = append(w.Nodes, &world.Node{Name: name, Chassis: "c" + name, Agent: agents[name]})
		}
		return w
	}
	w := snapshot()
	p.Observe(w)
	version, pending := uint64(1), map[world.Key]bool{}
	for step := range 2000 {
		key := world.Key{Namespace: "shop", Name: strconv.Itoa(r.IntN(6))}
		reports := map[string]*world.ZoneAgent{}
		switch r.IntN(4) {
		case 0:
			p.forget(Name(key))
			pending[key] = true
		case 1:
			version++
			spec := v1alpha1.ServicePlanSpec{Namespace: key.Namespace, Name: key.Name,
				Listeners: []v1alpha1.PlannedListener{{Backends: make([]v1alpha1.PlannedBackend, r.IntN(3))}}}
			for i := range 1 + r.IntN(2) {
				spec.VIPs = append(spec.VIPs, v1alpha1.PlannedVIP{Address: fmt.Sprintf("10.50.%d.%s", i, key.Name),
					L2Domain: "lan", Shard: int32(r.IntN(3))}) //nolint:gosec // 0 to 2
			}
			p.store(&v1alpha1.ServicePlan{Spec: spec, ObjectMeta: metav1.ObjectMeta{Name: Name(key),
				UID: types.UID(strconv.Itoa(r.IntN(2))), ResourceVersion: strconv.FormatUint(version, 10)}})
			pending[key] = true
		default:
			name := []string{"n1", "n2"}[r.IntN(2)]
			report := *agents[name]
			if at := version - min(version, r.Uint64N(3)); report.IsHealthy() || at > report.Applied {
				report.Applied = at
			}
			agents[name], reports[name] = &report, &report
		}
		var published []world.Key
		if r.IntN(3) > 0 { // otherwise the result of the write comes later
			for k := range pending {
				published = append(published, k)
			}
			clear(pending)
		}
		told := p.ObserveReports(w, reports, published)
		if len(pending) > 0 {
			continue
		}
		fresh := snapshot()
		p.Observe(fresh)
		what := cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(fresh.Applied, w.Applied, what) + cmp.Diff(fresh.ApplyErrors, w.ApplyErrors); diff != "" {
			t.Fatalf("step %d, %v: (-anew +added)\n%s", step, told, diff)
		}
	}
}

// The status of a Service whose plan was applied does not wait for reports, so they cost no work for it.
func TestReportsConcernAwaitedServicesOnly(t *testing.T) {
	agent := &world.ZoneAgent{Applied: 9}
	p := New(Options{})
	for i := range 5 {
		p.store(&v1alpha1.ServicePlan{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shop.%d", i),
			ResourceVersion: strconv.Itoa(6 + i)}, Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: strconv.Itoa(i),
			VIPs: []v1alpha1.PlannedVIP{{Address: "10.50.0.100", L2Domain: "lan"}}}})
	}
	w := &world.Snapshot{Domains: []*world.Domain{{Name: "lan", Gateways: map[int][]string{0: {"n1"}}}},
		Nodes: []*world.Node{{Name: "n1", Chassis: "c1", Agent: agent}}}
	p.Observe(w)
	for _, want := range []int{1, 0} {
		applied := *agent
		applied.Applied = 10
		if got := p.ObserveReports(w, map[string]*world.ZoneAgent{"n1": &applied}, nil); len(got) != want {
			t.Errorf("concerns %v, want %d Services", got, want)
		}
	}
}
