// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func noCarrier() map[string]world.Fault {
	return map[string]world.Fault{"provider": {Kind: world.FaultUplink, Message: "no carrier"}}
}

func leaseOf(t *testing.T, r convert.Report) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{}}}
	faults, err := convert.FaultsReport(r.Faults)
	if err != nil {
		t.Fatal(err)
	}
	l.Annotations[v1alpha1.AnnotationFaults] = faults
	for annotation, value := range map[string]any{
		v1alpha1.AnnotationConflicts: r.Conflicts, v1alpha1.AnnotationAnnouncedConflicts: r.AnnouncedConflicts,
		v1alpha1.AnnotationProbed: r.Probed} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		l.Annotations[annotation] = string(text)
	}
	now := metav1.NowMicro()
	l.Spec.RenewTime = &now
	return l
}

// The report of a guard is valid while it sends heartbeats, and only changes of the report wake the controller.
func TestReportsOfGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		var wakes atomic.Int32 // timers call it, too
		f.hooks.Wake = func() { wakes.Add(1) }
		lost := noCarrier()
		expect := func(when string, wantWakes int32, want map[string]world.Fault) {
			t.Helper()
			synctest.Wait()
			woken := wakes.Swap(0)
			if got := snapshot(f).Nodes[0].Faults; woken != wantWakes || !maps.Equal(got, want) {
				t.Errorf("%s: %d wakes, faults %v; want %d and %v", when, woken, got, wantWakes, want)
			}
		}
		first := leaseOf(t, convert.Report{Faults: lost})
		f.setReport(nil, first)
		expect("reported", 1, lost)
		<-time.After(30 * time.Second)
		f.setReport(first, leaseOf(t, convert.Report{Faults: lost}))
		expect("renewed", 0, lost)
		<-time.After(39 * time.Second)
		expect("39 s later", 0, lost)
		<-time.After(2 * time.Second)
		expect("silent", 1, nil)
		f.setReport(first, leaseOf(t, convert.Report{Faults: lost}))
		expect("back", 1, lost)
		asked := first.DeepCopy()
		asked.Annotations[v1alpha1.AnnotationAddressProbes] = "[]"
		<-time.After(30 * time.Second)
		f.setReport(first, asked)
		expect("asked", 0, lost)
		if got := f.probes()["n1"]; got != "[]" {
			t.Errorf("address probes %q", got)
		}
		<-time.After(11 * time.Second)
		expect("silent although probes are requested", 1, nil)
		f.setReport(first, leaseOf(t, convert.Report{Faults: lost}))
		expect("back again", 1, lost)
		f.setReport(first, leaseOf(t, convert.Report{Faults: lost, Probed: []string{"1-1"}}))
		expect("a probe request is completed", 1, lost)
		if got := snapshot(f).Probed["n1"]; !slices.Equal(got, []string{"1-1"}) {
			t.Errorf("completed probe requests %q", got)
		}
		f.setReport(first, nil)
		expect("gone", 1, nil)
		<-time.After(time.Minute)
		expect("and long gone", 0, nil)

		broken := leaseOf(t, convert.Report{Faults: lost})
		broken.Annotations[v1alpha1.AnnotationFaults] = `["provider"]`
		f.setReport(nil, broken)
		expect("unreadable", 1, nil)
		if !snapshot(f).Nodes[0].Guarded {
			t.Error("the node has a guard nevertheless")
		}
	})
}

// What a guard reports of OVN's tunnels counts while its Lease is renewed, with or without an agent, and a change wakes
// the controller.
func TestReportsOfTunnelsExpire(t *testing.T) {
	for _, zone := range []string{"", `{"bridges":{"physnet":"br-ex"}}`} {
		synctest.Test(t, func(t *testing.T) {
			f, _ := counted()
			f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			var wakes atomic.Int32
			f.hooks.Wake = func() { wakes.Add(1) }
			reported := func(tunnels string) *coordinationv1.Lease {
				lease := leaseOf(t, convert.Report{})
				lease.Annotations[v1alpha1.AnnotationTunnels] = tunnels
				if zone != "" {
					lease.Annotations[v1alpha1.AnnotationZone] = zone
				}
				return lease
			}
			expect := func(when string, wantWakes int32, want *world.Tunnels) {
				t.Helper()
				synctest.Wait()
				woken := wakes.Swap(0)
				if got := snapshot(f).Nodes[0].Tunnels; woken != wantWakes || !got.Equal(want) {
					t.Errorf("zone %q, %s: %d wakes, tunnels %+v; want %d and %+v", zone, when, woken, got, wantWakes, want)
				}
			}
			up, down := reported(`{}`), reported(`{"allDown":3}`)
			f.setReport(nil, up)
			expect("all up", 1, &world.Tunnels{})
			<-time.After(time.Second)
			down.Spec.RenewTime = new(metav1.NowMicro())
			f.setReport(up, down)
			expect("all down", 1, &world.Tunnels{AllDown: 3})
			<-time.After(41 * time.Second)
			expect("silent", 1, nil)
		})
	}
}

// An outage of the API server silences all agents, and so does who deletes their Leases. What they programmed is still
// there, so nothing must be withdrawn as long as the node exists.
func TestReportsOfZonesOutliveTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		f.hooks.Wake = func() {}
		lease := leaseOf(t, convert.Report{Faults: noCarrier()})
		lease.Annotations[v1alpha1.AnnotationZone] = `{"applied":7}`
		f.setReport(nil, lease)
		expect := func(when string, silent, guarded bool) {
			t.Helper()
			synctest.Wait()
			n := snapshot(f).Nodes[0]
			if n.Agent == nil || n.Agent.Applied != 7 || n.Agent.Silent != silent || n.Guarded != guarded {
				t.Errorf("%s: agent %+v, guarded %v; want silent %v, guarded %v", when, n.Agent, n.Guarded, silent, guarded)
			}
		}
		expect("reported", false, true)
		<-time.After(time.Minute)
		expect("expired", true, false)
		again := lease.DeepCopy()
		now := metav1.NowMicro()
		again.Spec.RenewTime = &now
		f.setReport(lease, again)
		expect("back", false, true)
		f.setReport(again, nil)
		expect("its Lease is deleted", true, false)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		f.setNode(node, nil)
		f.setNode(nil, node)
		if n := snapshot(f).Nodes[0]; n.Agent != nil {
			t.Errorf("another node of that name: agent %+v", n.Agent)
		}
	})
}

// A report that expired before this process started never counts as current: the first decision would take a gateway
// whose agent hangs for one that follows, and give its shard to another one while it goes on answering.
func TestReportsThatExpiredBeforeAreSilentAtOnce(t *testing.T) {
	f, _ := counted()
	f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	l := leaseOf(t, convert.Report{Faults: noCarrier()})
	l.Annotations[v1alpha1.AnnotationZone] = `{"claims": {"lan/0": "2026-01-01T00:00:00Z"}}`
	l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	f.setReport(nil, l)
	n := snapshot(f).Nodes[0]
	if n.Agent == nil || !n.Agent.Silent || n.Guarded || len(n.Faults) > 0 || !f.expiredLeases["n1"] {
		t.Errorf("agent %+v, guarded %t, faults %v, expired %v", n.Agent, n.Guarded, n.Faults, f.expiredLeases)
	}
}

// Another client that writes the Lease of a dead guard, or a resync of the informer, does not make its report current.
func TestExpiredReportsAreRevivedOnlyByHeartbeats(t *testing.T) {
	for _, zone := range []string{"", `{"applied":7}`} {
		synctest.Test(t, func(t *testing.T) {
			f, wakes := counted()
			f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			lease := leaseOf(t, convert.Report{Faults: noCarrier()})
			if zone != "" {
				lease.Annotations[v1alpha1.AnnotationZone] = zone
			}
			f.setReport(nil, lease)
			<-time.After(time.Minute)
			synctest.Wait()
			snapshot(f)
			before := wakes.Load()
			asked := lease.DeepCopy()
			asked.Annotations[v1alpha1.AnnotationAddressProbes] = "[]"
			f.setReport(lease, asked)
			n := snapshot(f).Nodes[0]
			if len(n.Faults) > 0 || n.Guarded || !f.expiredLeases["n1"] || wakes.Load() != before {
				t.Errorf("zone %q: faults %v, guarded %v, expired %v, %d wakes", zone, n.Faults, n.Guarded,
					f.expiredLeases["n1"], wakes.Load()-before)
			}
			if zone != "" && (n.Agent == nil || !n.Agent.Silent || f.probes()["n1"] != "[]") {
				t.Errorf("agent %+v, address probes %q", n.Agent, f.probes()["n1"])
			}
			f.setReport(asked, leaseOf(t, convert.Report{}))
			if n := snapshot(f).Nodes[0]; !n.Guarded || f.expiredLeases["n1"] || wakes.Load() == before {
				t.Errorf("zone %q: the guard is back: %+v", zone, n)
			}
		})
	}
}

// Each conflict is reported with the node of its guard and the ID of the probe request.
func TestConflictsReportedByGuards(t *testing.T) {
	f, wakes := counted()
	since := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	addr := netip.MustParseAddr("fd00:50::7")
	want := map[string]map[netip.Addr]world.Conflict{}
	for _, node := range []string{"n2", "n1"} {
		mac := "02:00:00:00:00:0" + node[1:]
		l := leaseOf(t, convert.Report{Conflicts: map[netip.Addr]convert.ConflictReport{addr: {MAC: mac, Since: since,
			Probe: "1-" + node}}})
		l.Name = node
		f.setReport(nil, l)
		want[node] = map[netip.Addr]world.Conflict{addr: {MAC: mac, Node: node, Since: since, Probe: "1-" + node}}
	}
	got := snapshot(f)
	if !maps.EqualFunc(got.Reports, want, maps.Equal) || len(got.Conflicts) != 0 || int(wakes.Load()) != 2 {
		t.Errorf("reports %v after %d wakes, want %v; conflicts %v", got.Reports, int(wakes.Load()), want, got.Conflicts)
	}
}

// A conflict on an address that the node announces is a fact of its own, and wakes the controller.
func TestConflictsOnAnnouncedAddresses(t *testing.T) {
	f, wakes := counted()
	since, addr := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC), netip.MustParseAddr("fd00:50::7")
	before, after := leaseOf(t, convert.Report{}), leaseOf(t, convert.Report{
		AnnouncedConflicts: map[netip.Addr]convert.ConflictReport{addr: {MAC: "02:00:00:00:00:03", Since: since}}})
	later := metav1.NewMicroTime(before.Spec.RenewTime.Add(time.Second))
	after.Spec.RenewTime = &later
	f.setReport(nil, before)
	woken := wakes.Load()
	f.setReport(before, after)
	want := map[string]map[netip.Addr]world.Conflict{
		"n1": {addr: {MAC: "02:00:00:00:00:03", Node: "n1", Since: since}}}
	if got := snapshot(f); !maps.EqualFunc(got.AnnouncedReports, want, maps.Equal) || len(got.Reports) != 0 ||
		wakes.Load() != woken+1 {
		t.Errorf("%v and %v after %d wakes, want %v", got.AnnouncedReports, got.Reports, wakes.Load()-woken, want)
	}
}

// An agent reports a version after each change of an endpoint. The controller wakes up only for one that a status
// awaits, and needs no decision about everything unless more than the version has changed.
func TestAppliedVersionsWakeWhileTheyAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wakes := counted()
		f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		awaited := uint64(0)
		f.hooks.Awaited = func() uint64 { return awaited }
		f.hooks.Lags = func(node string) bool { return node == "n1" && awaited == 10 }
		var last *coordinationv1.Lease
		for i, step := range []struct {
			awaited uint64
			zone    string
			wakes   bool
			// applied is set if only the version is another one, all if more is.
			applied, all bool
		}{
			{5, `{"applied":3}`, true, false, true}, {5, `{"applied":4}`, true, true, false},
			{5, `{"applied":6}`, true, true, false}, {5, `{"applied":8}`, false, true, false},
			{5, `{"applied":8}`, false, false, false}, {9, `{"applied":9}`, true, true, false},
			{9, `{"applied":10,"problem":"x"}`, true, false, true}, {9, `{"applied":10}`, true, false, true},
			{9, `{"applied":2}`, true, true, false}, {9, `{"applied":4,"unwritable":"x"}`, true, false, true},
			{9, `{"applied":3,"unwritable":"x"}`, true, false, true}, {9, `{"applied":9}`, true, false, true},
			{9, `{"applied":9,"appliedHere":3}`, false, false, false},
			{10, `{"applied":9,"appliedHere":4}`, true, false, true},
		} {
			awaited = step.awaited
			lease := leaseOf(t, convert.Report{})
			lease.Annotations[v1alpha1.AnnotationZone] = step.zone
			before := wakes.Load()
			f.setReport(last, lease)
			last = lease
			if woken := wakes.Load() != before; woken != step.wakes {
				t.Errorf("step %d: woken %t, want %t", i, woken, step.wakes)
			}
			changes := f.Changes()
			if changes.Others != step.all || (changes.Applied["n1"] != nil) != step.applied {
				t.Errorf("step %d: %+v, want applied %t, all %t", i, changes, step.applied, step.all)
			}
			snapshot(f) // takes the changes
			<-time.After(time.Second)
		}
	})
}
