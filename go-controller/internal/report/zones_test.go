// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// With interconnect, an address is neither in the status nor announced before the zone of its gateway has reported that
// it is programmed there. The report alone changes the status, although nothing else does.
func TestStatusWaitsForTheZoneOfTheGateway(t *testing.T) {
	s := worldtest.Service(web, 1)
	var m decide.State
	var cache Cache
	programmed := map[world.Key]loop.Result{}
	status := func(change func(*world.Snapshot)) *kube.ServiceStatus {
		w := worldtest.Small(5, s)
		w.Now = s.Created
		w.Cluster.NoDatabase = true
		for _, n := range w.Nodes {
			n.Zone, n.Agent = n.Name, &world.ZoneAgent{}
		}
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "chassis-2"}}
		change(w)
		d := m.Decide(w)
		if p := d.Plans[web]; p != nil {
			programmed[web] = loop.Result{Key: web, Plan: p}
		}
		return NewBuilder(d, Observed{Synced: true, Configured: true, Programmed: programmed}).Services(&cache)[web]
	}
	published := func(*world.Snapshot) {}
	if got := status(published); got != nil {
		t.Fatalf("published only: %+v", got)
	}
	got := status(func(w *world.Snapshot) { w.ApplyErrors = map[world.Key]string{web: "address 10.50.0.100: no room"} })
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionFalse ||
		got.Announced.Reason != v1alpha1.ReasonDataplaneError || !strings.Contains(got.Announced.Message, "no room") {
		t.Fatalf("the zone failed: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Applied = map[world.Key][]netip.Addr{web: {netip.MustParseAddr("10.50.0.100")}}
	})
	if got == nil || len(got.Addrs) != 1 || got.Announced == nil || got.Announced.Status != metav1.ConditionTrue {
		t.Fatalf("the zone has it: %+v", got)
	}
	if got := status(published); got != nil {
		t.Fatalf("the zone has it no longer: %+v", got)
	}
	// A zone that reports nothing does not keep the address from the Service forever.
	got = status(func(w *world.Snapshot) { w.Now = s.Created.Add(world.ZoneWait) })
	if got == nil || len(got.Addrs) != 1 || got.Announced != nil {
		t.Fatalf("the zone is silent: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Now, w.Nodes[1].Agent = s.Created.Add(world.ZoneWait), &world.ZoneAgent{Silent: true}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonNodeSilent {
		t.Fatalf("its report has expired: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Now, w.Nodes[1].Agent = s.Created.Add(world.ZoneWait), &world.ZoneAgent{Unwritable: "no database"}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonDatabaseUnreachable ||
		!strings.Contains(got.Announced.Message, "no database") {
		t.Fatalf("its zone can't be changed: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Applied = map[world.Key][]netip.Addr{web: {netip.MustParseAddr("10.50.0.100")}}
		w.ShardStates[world.ShardID{Domain: "lan"}] = world.ShardState{Active: "chassis-2", Rivals: []string{"chassis-3"}}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionFalse ||
		got.Announced.Reason != v1alpha1.ReasonSeveralActiveGateways ||
		!strings.Contains(got.Announced.Message, "gateway n2 is active, and so is n3") {
		t.Fatalf("two gateways answer: %+v", got)
	}
	got = status(func(w *world.Snapshot) { w.Now, w.ShardStates = s.Created.Add(world.ZoneWait), nil })
	if got == nil || got.Announced == nil || got.Announced.Reason != v1alpha1.ReasonNoActiveGateway {
		t.Fatalf("no gateway: %+v", got)
	}
}
