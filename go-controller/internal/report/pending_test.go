// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
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

// What ovn-northd has not translated is not announced. A new address is withheld for ProgramWait, and the condition of
// one that is in the status stays as it is until then.
func TestStatusWaitsForNorthd(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, assigned := range []bool{false, true} {
		s := worldtest.Service(web, 1)
		if assigned {
			s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
		}
		var m decide.State
		var cache Cache
		var until time.Time
		status := func(now, pending time.Time) *status.Service {
			w := worldtest.Small(5, s)
			w.Now = now
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
			d := m.Decide(w)
			v := NewBuilder(d, Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{
				web: {Key: web, Plan: d.Plans[web], Pending: pending}}})
			until = v.PendingUntil()
			return v.Services(&cache)[web]
		}
		late := start.Add(world.ProgramWait)
		got := status(late.Add(-1), start)
		if assigned && (got == nil || got.Announced != nil) || !assigned && got != nil || !until.Equal(late) {
			t.Errorf("pending, assigned %t: %+v, until %v", assigned, got, until)
		}
		got = status(late, start)
		if got == nil || len(got.Addrs) != 1 || got.Announced == nil || got.Announced.Status != metav1.ConditionUnknown ||
			got.Announced.Reason != v1alpha1.ReasonNotTranslated || !until.IsZero() {
			t.Errorf("pending for too long, assigned %t: %+v, until %v", assigned, got, until)
		}
		got = status(late, time.Time{})
		if got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionTrue {
			t.Errorf("translated, assigned %t: %+v", assigned, got)
		}
	}
}

// A Service whose newest plan waits for a noticeable time says so, whether it has been served before or not.
func TestStatusNamesAPlanThatWaits(t *testing.T) {
	var m decide.State
	var cache Cache
	s := worldtest.Service(web, 1)
	s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	for _, served := range []bool{true, false} {
		for _, postponed := range []bool{false, true, false} {
			w := worldtest.Small(5, s)
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
			d := m.Decide(w)
			result := loop.Result{Key: web, Postponed: postponed}
			if served {
				result.Plan = d.Plans[web]
			}
			got := NewBuilder(d, Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{
				web: result}}).Services(&cache)[web].Announced
			says := got != nil && got.Reason == v1alpha1.ReasonProgramming && got.Status == metav1.ConditionUnknown
			if says != postponed || served && got == nil {
				t.Errorf("served %t, postponed %t: %+v", served, postponed, got)
			}
		}
	}
}

// With OpenShift SDN, Announced of a Service stays as it is for ProgramWait while a node has not confirmed its address.
func TestStatusWaitsForTheNodeOfAnAddress(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := worldtest.Service(web, 1)
	s.Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	var m decide.State
	var cache Cache
	for _, wait := range []time.Duration{world.ProgramWait - 1, world.ProgramWait} {
		w := withKernels(worldtest.Small(5, s))
		w.Now = start.Add(wait)
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n1"}}
		d := m.Decide(w)
		got := NewBuilder(d, Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{
			web: {Key: web, Plan: d.Plans[web], Pending: start}}}).Services(&cache)[web].Announced
		switch {
		case wait < world.ProgramWait && got != nil:
			t.Errorf("after %v: %+v, want the condition to stay", wait, got)
		case wait == world.ProgramWait && (got == nil || got.Status != metav1.ConditionUnknown ||
			got.Reason != v1alpha1.ReasonProgramming):
			t.Errorf("after %v: %+v", wait, got)
		}
	}
}
