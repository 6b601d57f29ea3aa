// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// forged returns a cluster of 200 nodes of which each reports other prefixes, apart from the first.
func forged(prefixes int) (*world.Snapshot, *bgp.Layout) {
	w, l := reporting(200)
	for i, n := range w.Nodes[1:] {
		var list []netip.Prefix
		for p := range prefixes {
			list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(i), byte(p >> 8), byte(p)}), 32))
		}
		w.FRR.Nodes[n.Name].Running = frrapi.Running{"10.50.0.1": list}
	}
	w.AddFRRSessions()
	return w, l
}

// decide plans the objects, and surveys all Services.
func decide(w *world.Snapshot, l *bgp.Layout, state *frrk8s.State) (*frrk8s.Plan, *bgp.Survey) {
	plan := frrk8s.Render(w, l, state)
	survey := l.SurveyFRR(plan)
	for _, s := range w.Services {
		survey.Of(s, s.Assigned[0])
		survey.Overdue(s, s.Assigned[0])
	}
	return plan, survey
}

// A decision needs little memory for what nodes report beyond what they should, however much it is.
func TestForgedReportsTakeLittleMemory(t *testing.T) {
	const most = 8 << 20
	bytes := func(prefixes int) uint64 {
		w, l := forged(prefixes)
		var state frrk8s.State
		decide(w, l, &state)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decide(w, l, &state)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	none, all := bytes(0), bytes(frrapi.MaxAdvertised)
	t.Logf("%d KB without, %d KB with forged reports", none>>10, all>>10)
	if all > none+most {
		t.Errorf("%d KB more, want at most %d", (all-none)>>10, most>>10)
	}
}

// A route that should be withdrawn is found among forged ones of all other nodes, and each of these is named.
func TestOverdueWithdrawalIsFoundAmongForgedReports(t *testing.T) {
	w, l := forged(1000)
	w.Nodes[0].NetworkUnavailable = true
	plan, _ := decide(w, l, &frrk8s.State{})
	prefix := netip.PrefixFrom(w.Services[0].Assigned[0], 32)
	if got := fmt.Sprint(plan.Overdue("tor", prefix)); got != "["+w.Nodes[0].Name+"]" {
		t.Errorf("overdue: %s", got)
	}
	for i, n := range w.Nodes[1:] {
		first := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(i), 0, 0}), 32)
		if got := fmt.Sprint(plan.Overdue("tor", first)); got != "["+n.Name+"]" {
			t.Errorf("%s is overdue on %s, want %s", first, got, n.Name)
		}
	}
}

// Nothing is claimed of a node whose report is not read: its routes are neither there nor absent.
func TestNodeWithUnreadReportIsUnknown(t *testing.T) {
	w, l := reporting(2)
	w.FRR.Nodes["n0001"] = &world.FRRNode{Unread: "too much"}
	w.AddFRRSessions()
	plan, survey := decide(w, l, &frrk8s.State{})
	s := w.Services[0]
	by, session := survey.Of(s, s.Assigned[0]), w.Sessions["n0001"]["tor"]
	if got := fmt.Sprint(by.Nodes); got != "[n0000]" || !session.Unknown || plan.NotWithdrawn("tor") != "" {
		t.Errorf("announced by %s, session %+v, %s", got, session, plan.NotWithdrawn("tor"))
	}
	w.Nodes[1].NetworkUnavailable = true
	if plan, _ := decide(w, l, &frrk8s.State{}); plan.NotWithdrawn("tor") != "" {
		t.Error("of a node that is unknown:", plan.NotWithdrawn("tor"))
	}
}

// BenchmarkForgedReports measures a decision with as many forged prefixes as are read.
func BenchmarkForgedReports(b *testing.B) {
	w, l := forged(frrapi.MaxAdvertised)
	var state frrk8s.State
	decide(w, l, &state)
	b.ReportAllocs()
	for b.Loop() {
		decide(w, l, &state)
	}
}
