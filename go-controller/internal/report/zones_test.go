// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
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

// With interconnect, an address is neither in the status nor announced before the zone of its gateway has reported that
// it is programmed there. The report alone changes the status, although nothing else does.
func TestStatusWaitsForTheZoneOfTheGateway(t *testing.T) {
	s := worldtest.Service(web, 1)
	start := s.Created.Add(time.Hour) // its pool was created late
	late := start.Add(world.ProgramWait)
	var m decide.State
	var cache Cache
	programmed := map[world.Key]loop.Result{}
	status := func(change func(*world.Snapshot)) *status.Service {
		w := worldtest.Small(5, s)
		w.Now = start
		w.Cluster.NoDatabase = true
		for _, n := range w.Nodes {
			n.Zone, n.Agent = n.Name, &world.ZoneAgent{}
		}
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
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
	got = status(func(w *world.Snapshot) { w.Now = late })
	if got == nil || len(got.Addrs) != 1 || got.Announced != nil {
		t.Fatalf("the zone is silent: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Now, w.Nodes[1].Agent = late, &world.ZoneAgent{Silent: true}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonNodeSilent {
		t.Fatalf("its report has expired: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Now, w.Nodes[1].Agent = late, &world.ZoneAgent{Unwritable: "no database"}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonDatabaseUnreachable ||
		!strings.Contains(got.Announced.Message, "no database") {
		t.Fatalf("its zone can't be changed: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.ApplyErrors = map[world.Key]string{web: "address 10.50.0.100: not connected"}
		w.Nodes[1].Agent = &world.ZoneAgent{Unwritable: "no database"}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionUnknown ||
		got.Announced.Reason != v1alpha1.ReasonDatabaseUnreachable {
		t.Fatalf("a change failed because its zone can't be changed: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Applied = map[world.Key][]netip.Addr{web: {netip.MustParseAddr("10.50.0.100")}}
		w.ShardStates[world.ShardID{Domain: "lan"}] = world.ShardState{Active: "n2", Rivals: []string{"n3"}}
	})
	if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionFalse ||
		got.Announced.Reason != v1alpha1.ReasonSeveralActiveGateways ||
		!strings.Contains(got.Announced.Message, "gateway n2 is active, and so is n3") {
		t.Fatalf("two gateways answer: %+v", got)
	}
	got = status(func(w *world.Snapshot) {
		w.Applied = map[world.Key][]netip.Addr{web: {netip.MustParseAddr("10.50.0.100")}}
		w.ShardStates[world.ShardID{Domain: "lan"}] = world.ShardState{Active: "n2", Rivals: []string{"n3"}}
		w.Nodes[2].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultOVNController,
			Message: "ovn-controller has not answered for 30s"}}
	})
	if got == nil || got.Announced == nil || got.Announced.Reason != v1alpha1.ReasonSeveralActiveGateways ||
		!strings.Contains(got.Announced.Message, "node n3 can't release the address: ovn-controller has not answered") ||
		strings.Contains(got.Announced.Message, "UDP port 6081") {
		t.Fatalf("the ovn-controller of one of two gateways hangs: %+v", got.Announced)
	}
	got = status(func(w *world.Snapshot) {
		w.Applied = map[world.Key][]netip.Addr{web: {netip.MustParseAddr("10.50.0.100")}}
		w.ShardStates[world.ShardID{Domain: "lan"}] = world.ShardState{Active: "n2", Rivals: []string{"n3"}}
		w.Nodes[1].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultVswitchd,
			Message: "ovs-vswitchd is not running"}}
	})
	if got == nil || got.Announced == nil || got.Announced.Reason != v1alpha1.ReasonGatewayFaulty ||
		!strings.Contains(got.Announced.Message, "node n2 can't release it: ovs-vswitchd is not running") ||
		!strings.Contains(got.Announced.Message, "also claimed by gateway n3") {
		t.Fatalf("ovs-vswitchd of the gateway that counts as active does not run: %+v", got.Announced)
	}
	got = status(func(w *world.Snapshot) { w.Now, w.ShardStates = late, nil })
	if got == nil || got.Announced == nil || got.Announced.Reason != v1alpha1.ReasonNoActiveGateway {
		t.Fatalf("no gateway: %+v", got)
	}
}

// The status keeps the mode of a domain that is no longer served until gateways can't answer for its addresses.
func TestModeStaysWhileGatewaysMayAnswer(t *testing.T) {
	shard := world.ShardID{Domain: "lan"}
	rows := map[world.ShardID]world.ShardState{shard: {}}
	for name, c := range map[string]struct {
		served   world.ServingMode
		database bool
		change   func(*world.Snapshot, *Observed)
		want     string
	}{
		"central, the rows are there": {world.ServedCentrally, true, func(w *world.Snapshot, _ *Observed) {
			w.ShardStates = rows
		}, "Central"},
		"central, the rows are gone": {world.ServedCentrally, true, func(*world.Snapshot, *Observed) {}, ""},
		"central, not read": {world.ServedCentrally, true, func(_ *world.Snapshot, k *Observed) {
			k.Unread = true
		}, "Central"},
		"central, without a database": {world.ServedCentrally, false, func(*world.Snapshot, *Observed) {}, "Central"},
		"zones, one has claimed": {world.ServedByZones, false, func(w *world.Snapshot, _ *Observed) {
			claimBy(w, 2)
		}, "Interconnect"},
		"zones, none has claimed":      {world.ServedByZones, false, func(*world.Snapshot, *Observed) {}, ""},
		"it has not been served since": {"", false, func(w *world.Snapshot, _ *Observed) { w.ShardStates = rows }, ""},
	} {
		w := worldtest.Small(5)
		w.Domains[0].Served = c.served
		w.Cluster.NoDatabase = !c.database
		for i, n := range w.Nodes {
			// A controller with a database finds interconnect, one without finds most nodes in one zone.
			n.Zone = "global"
			if c.database || i == 2 {
				n.Zone, n.Agent = n.Name, &world.ZoneAgent{}
			}
		}
		k := Observed{Synced: true, Configured: true}
		c.change(w, &k)
		var m decide.State
		was := v1alpha1.L2DomainStatus{Mode: string(c.served)}
		got, changed := NewBuilder(m.Decide(w), k).Domains()["lan"](&v1alpha1.L2Domain{Status: was}, time.Now())
		if !changed || got.Status.Mode != c.want || got.Status.ModeMessage != "" {
			t.Errorf("%s: mode %q (%s), want %q", name, got.Status.Mode, got.Status.ModeMessage, c.want)
		}
	}
}

// claimBy makes the agent of a node report that it has claimed shard lan/0.
func claimBy(w *world.Snapshot, node int) {
	w.Nodes[node].Agent.Claims = map[world.ShardID]time.Time{{Domain: "lan"}: time.Unix(1, 0)}
}

// A changed mode alone is written.
func TestModeIsInTheStatus(t *testing.T) {
	w := worldtest.Small(5)
	k := Observed{Synced: true, Configured: true}
	status := func(have *v1alpha1.L2Domain) (*v1alpha1.L2Domain, bool) {
		var m decide.State
		return NewBuilder(m.Decide(w), k).Domains()["lan"](have, time.Unix(5, 0))
	}
	have, _ := status(&v1alpha1.L2Domain{})
	if have.Status.Mode != "Central" || have.Status.ModeMessage == "" {
		t.Fatalf("%+v", have.Status)
	}
	if _, changed := status(have); changed {
		t.Error("the same status is written again")
	}
	have.Status.Mode = "Interconnect"
	if got, changed := status(have); !changed || got.Status.Mode != "Central" {
		t.Errorf("changed: %t", changed)
	}
}
