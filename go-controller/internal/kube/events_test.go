// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func domainOf(active ...string) *v1alpha1.L2Domain {
	d := &v1alpha1.L2Domain{}
	for i, a := range active {
		d.Status.Shards = append(d.Status.Shards, v1alpha1.ShardStatus{Index: int32(i), Active: a})
	}
	return d
}

func domainMoving(state, message string) *v1alpha1.L2Domain {
	d := domainOf("n1")
	d.Status.Move = &v1alpha1.MoveStatus{Request: "request", State: state, Message: message}
	return d
}

func TestFailoverEmitsOneDomainEvent(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *v1alpha1.L2Domain
		want          string
	}{
		"a gateway died": {domainOf("n1", "n2", "n1", "n1"), domainOf("n2", "n2", "n3", "n2"),
			"Normal GatewayChanged shard 0, 3: moved from gateway n1 to n2; shard 2: moved from gateway n1 to n3"},
		"no gateway is left": {domainOf("n1"), domainOf(""),
			"Warning GatewayChanged shard 0: no active gateway; the last was n1"},
		"a gateway joined": {domainOf("", "n1"), domainOf("n2", "n1"),
			"Normal GatewayChanged shard 0: gateway n2 became active; there was no active gateway"},
		"nothing changed": {domainOf("n1"), domainOf("n1"), ""},
		"a move failed": {domainMoving(v1alpha1.MoveInProgress, ""), domainMoving(v1alpha1.MoveFailed, `node "n9" does not exist`),
			`Warning MoveFailed node "n9" does not exist`},
		"a move failed before": {domainMoving(v1alpha1.MoveFailed, "why"), domainMoving(v1alpha1.MoveFailed, "why"), ""},
		"a move was completed": {domainMoving(v1alpha1.MoveInProgress, ""), domainMoving(v1alpha1.MoveCompleted, ""), ""},
		"a shard was put up":   {domainOf("n1"), domainOf("n1", "n2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var events Events
			events.Domain(test.before, test.after)
			var got []string
			for _, e := range events.queue.take(10) {
				got = append(got, e.kind+" "+e.reason+" "+e.message)
			}
			if joined := strings.Join(got, "\n"); joined != test.want {
				t.Errorf("got %q, want %q", joined, test.want)
			}
		})
	}
}

// A conflict is reported when it is found, and not again while it lasts.
func TestConflictEmitsOneEvent(t *testing.T) {
	with := func(status metav1.ConditionStatus, reason string) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAnnounced, Status: status, Reason: reason, Message: "10.50.0.100: another host"}}}}
	}
	programming, contested := with(metav1.ConditionUnknown, v1alpha1.ReasonProgramming),
		with(metav1.ConditionFalse, v1alpha1.ReasonAddressConflict)
	var events Events
	events.service(&corev1.Service{}, programming)
	events.service(programming, contested)
	events.service(contested, contested)
	if got := events.queue.take(10); len(got) != 1 || got[0].kind != corev1.EventTypeWarning ||
		got[0].reason != v1alpha1.EventAddressConflict ||
		got[0].message != "10.50.0.100: another host" {
		t.Errorf("events %+v", got)
	}
	// Announced anyway, because the conflict was found too late.
	late := with(metav1.ConditionTrue, v1alpha1.ReasonAnnounced)
	late.Status.Conditions = append(late.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAllocated,
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAddressConflict, Message: "10.50.0.100: late"})
	events.service(with(metav1.ConditionTrue, v1alpha1.ReasonAnnounced), late)
	events.service(late, late)
	if got := events.queue.take(10); len(got) != 2 || got[1].reason != v1alpha1.EventAddressConflict ||
		got[1].message != "10.50.0.100: late" {
		t.Errorf("events %+v", got)
	}
}

// A Service that is no longer announced causes one Event, even if the databases were unreachable in between.
func TestAnnouncementFailedIsEmittedAfterDatabaseReturns(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	step := func(status metav1.ConditionStatus, reason string) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAnnounced, Status: status, Reason: reason, Message: reason}}}}
	}
	announced, unreachable := step(yes, v1alpha1.ReasonAnnounced), step(unknown, v1alpha1.ReasonDatabaseUnreachable)
	silent, failed := step(unknown, v1alpha1.ReasonNodeSilent), step(no, v1alpha1.ReasonNoEndpoints)
	programming := step(unknown, v1alpha1.ReasonProgramming)
	for name, test := range map[string]struct {
		history []*corev1.Service
		want    int
	}{
		"at once":                  {[]*corev1.Service{announced, failed}, 1},
		"after an unreachable one": {[]*corev1.Service{announced, unreachable, failed}, 1},
		"after silent nodes":       {[]*corev1.Service{announced, silent, failed}, 1},
		"it continues to fail":     {[]*corev1.Service{announced, unreachable, failed, failed}, 1},
		"it fails for another reason": {[]*corev1.Service{announced, unreachable, failed,
			step(no, v1alpha1.ReasonNoSession)}, 2},
		"it waits for its first pods":  {[]*corev1.Service{{}, programming, failed}, 0},
		"it was never announced":       {[]*corev1.Service{{}, programming, step(no, v1alpha1.ReasonNoDomain)}, 1},
		"it is announced all the time": {[]*corev1.Service{announced, unreachable, announced}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var events Events
			for i := range test.history[1:] {
				events.service(test.history[i], test.history[i+1])
			}
			got := events.queue.take(10)
			if len(got) != test.want || len(got) > 0 && got[0].reason != v1alpha1.EventAnnouncementFailed {
				t.Errorf("%+v", got)
			}
		})
	}
}

// kubectl describe shows when a Service got another address.
func TestAnotherAddressEmitsIPAllocated(t *testing.T) {
	with := func(addrs ...string) *corev1.Service {
		s := &corev1.Service{Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionAllocated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllocated,
			Message: strings.Join(addrs, ", ")}}}}
		for _, a := range addrs {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
		}
		return s
	}
	for name, test := range map[string]struct {
		before, after *corev1.Service
		want          []string
	}{
		"another one": {with("10.50.0.100"), with("192.0.2.2"), []string{"IPAllocated 192.0.2.2"}},
		"a second family": {with("10.50.0.100"), with("10.50.0.100", "fd00:50::100"),
			[]string{"IPAllocated 10.50.0.100, fd00:50::100"}},
		"a family less": {with("10.50.0.100", "fd00:50::100"), with("10.50.0.100"), nil},
		"the first one": {&corev1.Service{}, with("10.50.0.100"), []string{"IPAllocated 10.50.0.100"}},
		"the same":      {with("10.50.0.100"), with("10.50.0.100"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var events Events
			events.service(test.before, test.after)
			var got []string
			for _, e := range events.queue.take(10) {
				got = append(got, e.reason+" "+e.message)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A gateway needs a moment to claim an address that is new to it: only an address that stays unclaimed is worth a
// warning.
func TestUnclaimedAddressEmitsEventAfterDelay(t *testing.T) {
	step := func(status metav1.ConditionStatus, reason string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: corev1.ServiceStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAnnounced, Status: status, Reason: reason}}}}
	}
	announced := step(metav1.ConditionTrue, v1alpha1.ReasonAnnounced)
	unclaimed := step(metav1.ConditionFalse, v1alpha1.ReasonNoActiveGateway)
	failed := step(metav1.ConditionFalse, v1alpha1.ReasonNoSession)
	for name, test := range map[string]struct {
		next *corev1.Service
		want []string
	}{
		"it stays unclaimed":          {unclaimed, []string{v1alpha1.EventAnnouncementFailed}},
		"it is claimed":               {announced, []string{v1alpha1.EventAnnounced}},
		"it fails for another reason": {failed, []string{v1alpha1.EventAnnouncementFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events Events
				events.service(announced, unclaimed)
				if got := events.queue.take(10); len(got) > 0 {
					t.Errorf("events %+v before the delay", got)
				}
				events.service(unclaimed, test.next)
				<-time.After(2 * claimDelay)
				synctest.Wait()
				var got []string
				for _, e := range events.queue.take(10) {
					got = append(got, e.reason)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestDomainEmitsNoStableGatewayOnce(t *testing.T) {
	ready := func(reason string) *v1alpha1.L2Domain {
		d := &v1alpha1.L2Domain{}
		if reason != "" {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason, Message: "why"}}
		}
		return d
	}
	var events Events
	history := []string{"", v1alpha1.ReasonReady, v1alpha1.ReasonGatewaysDraining, v1alpha1.ReasonGatewaysDraining,
		v1alpha1.ReasonReady, v1alpha1.ReasonNoGateway, v1alpha1.ReasonNoGateway, v1alpha1.ReasonTooFewGateways}
	for i, reason := range history[1:] {
		events.Domain(ready(history[i]), ready(reason))
	}
	var got []string
	for _, e := range events.queue.take(10) {
		got = append(got, e.kind+" "+e.reason+" "+e.message)
	}
	if want := []string{"Warning GatewaysDraining why", "Warning NoGateway why"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEventsYieldToUrgentWritesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3 * eventBurst
		var events Events
		for i := range n {
			events.queue.add(event{&corev1.ObjectReference{}, corev1.EventTypeNormal, "Told", fmt.Sprint(i)})
		}
		recorder := record.NewFakeRecorder(n)
		var busy atomic.Bool
		busy.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); events.Run(ctx, recorder, busy.Load) }()
		<-time.After(time.Minute + eventPause/2) // between two batches
		if len(recorder.Events) != 0 {
			t.Errorf("%d Events while others were busy", len(recorder.Events))
		}
		busy.Store(false)
		<-time.After(eventPause)
		synctest.Wait()
		if len(recorder.Events) != eventBurst {
			t.Errorf("%d Events at once, want %d", len(recorder.Events), eventBurst)
		}
		<-time.After(time.Second)
		for i := range n {
			if got, want := <-recorder.Events, fmt.Sprint("Normal Told ", i); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		cancel()
		<-done
	})
}
