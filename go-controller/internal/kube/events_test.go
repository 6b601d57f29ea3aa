// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		"it is announced again when the databases return": {[]*corev1.Service{announced, failed, unreachable, announced},
			2},
		"it fails before and afterwards": {[]*corev1.Service{announced, failed, unreachable, failed}, 1},
		"and is announced later": {[]*corev1.Service{announced, failed, unreachable, failed, unreachable, announced,
			unreachable, announced}, 2},
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
	noGateway := step(metav1.ConditionFalse, v1alpha1.ReasonNoGateway)
	failed := step(metav1.ConditionFalse, v1alpha1.ReasonNoSession)
	for name, test := range map[string]struct {
		first, next *corev1.Service
		want        []string
	}{
		"it stays unclaimed":          {unclaimed, unclaimed, []string{v1alpha1.EventAnnouncementFailed}},
		"it is claimed":               {unclaimed, announced, []string{v1alpha1.EventAnnounced}},
		"it fails for another reason": {unclaimed, failed, []string{v1alpha1.EventAnnouncementFailed}},
		"it stays without a gateway":  {noGateway, noGateway, []string{v1alpha1.EventAnnouncementFailed}},
		"it gets a gateway":           {noGateway, announced, []string{v1alpha1.EventAnnounced}},
		"its gateway does not claim":  {noGateway, unclaimed, []string{v1alpha1.EventAnnouncementFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events Events
				events.service(announced, test.first)
				if got := events.queue.take(10); len(got) > 0 {
					t.Errorf("events %+v before the delay", got)
				}
				events.service(test.first, test.next)
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

// An L2Domain on br-ex has no gateway until its guards have seen the port that OVN creates for it: a Warning that is
// over within seconds would only alarm. One that stays is emitted once.
func TestDomainEmitsLastingLossOfGatewaysOnce(t *testing.T) {
	ready := func(reason string) *v1alpha1.L2Domain {
		d := &v1alpha1.L2Domain{}
		if reason != "" {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason, Message: "why"}}
		}
		return d
	}
	const drained, none = "Warning GatewaysDraining why", "Warning NoGateway why"
	for name, c := range map[string]struct{ history, want []string }{
		"it gets gateways": {[]string{"", v1alpha1.ReasonNoGateway, v1alpha1.ReasonTooFewGateways}, nil},
		"it drains": {[]string{v1alpha1.ReasonReady, v1alpha1.ReasonGatewaysDraining, v1alpha1.ReasonGatewaysDraining,
			v1alpha1.ReasonReady}, []string{drained}},
		"it has none": {[]string{v1alpha1.ReasonReady, v1alpha1.ReasonNoGateway, v1alpha1.ReasonNoGateway}, []string{none}},
		"it has none again": {[]string{v1alpha1.ReasonReady, v1alpha1.ReasonNoGateway, v1alpha1.ReasonReady,
			v1alpha1.ReasonNoGateway}, []string{none}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events Events
				for i, reason := range c.history[1:] {
					events.Domain(ready(c.history[i]), ready(reason))
				}
				<-time.After(2 * claimDelay)
				synctest.Wait()
				var got []string
				for _, e := range events.queue.take(10) {
					got = append(got, e.kind+" "+e.reason+" "+e.message)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// sink is an API server that stores Events, in the order in which they arrive. It takes a time for each.
type sink struct {
	took    time.Duration
	stopped chan struct{}
	mu      sync.Mutex
	written []*corev1.Event
}

func (s *sink) Create(e *corev1.Event) (*corev1.Event, error) {
	select {
	case <-time.After(s.took):
	case <-s.stopped:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, e)
	return e, nil
}

func (s *sink) Update(e *corev1.Event) (*corev1.Event, error)          { return e, nil }
func (s *sink) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { return s.Create(e) }

// messages returns the messages of the Events that were written.
func (s *sink) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.written {
		out = append(out, e.Message)
	}
	return out
}

// addEvents adds n Events about as many Services of a namespace. Their messages are the namespace and a number.
func addEvents(e *Events, namespace string, n int) {
	for i := range n {
		text := fmt.Sprint(namespace, " ", i)
		e.queue.add(event{&corev1.ObjectReference{Kind: "Service", Namespace: namespace, Name: text},
			corev1.EventTypeNormal, "Reason", text})
	}
}

// runEvents runs a test while Events are written.
func runEvents(t *testing.T, s *sink, busy func() bool, test func(e *Events)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var events Events
		s.stopped = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); events.Run(ctx, s, busy) }()
		synctest.Wait()
		test(&events)
		cancel()
		close(s.stopped)
		<-done
	})
}

func TestEventsYieldToUrgentWritesInOrder(t *testing.T) {
	const n = 3 * eventBurst
	var busy atomic.Bool
	busy.Store(true)
	s := &sink{}
	runEvents(t, s, busy.Load, func(e *Events) {
		addEvents(e, "shop", n)
		<-time.After(10*eventPause + eventPause/2) // between two batches
		if got := len(s.messages()); got != 10*eventBurstBusy {
			t.Errorf("%d Events in ten batches while others were busy, want %d", got, 10*eventBurstBusy)
		}
		busy.Store(false)
		<-time.After(eventPause)
		if got := len(s.messages()); got != 10*eventBurstBusy+eventBurst {
			t.Errorf("%d Events after one more batch, want %d more", got, eventBurst)
		}
		<-time.After(time.Second)
		got := s.messages()
		if len(got) != n {
			t.Fatalf("%d Events, want %d", len(got), n)
		}
		for i, text := range got {
			if want := fmt.Sprint("shop ", i); text != want {
				t.Errorf("got %q, want %q", text, want)
			}
		}
	})
}

// If each namespace has one Event only, the queue drops that of the last one, and continues to work.
func TestFullEventQueueOfManyNamespaces(t *testing.T) {
	var e Events
	for i := range maxEvents + 1 {
		addEvents(&e, fmt.Sprint("team", i), 1)
	}
	addEvents(&e, "team0", 1)
	got := e.queue.take(2 * maxEvents)
	left := e.queue.waiting
	if len(got) != maxEvents || got[0].message != "team0 0" || left.length != 0 || len(left.waiting) != 0 {
		t.Errorf("%d Events, then %d in %d namespaces", len(got), left.length, len(left.waiting))
	}
}

// The first Event of a tenant is written among the next ones, although another one fills the queue, and although the
// API server is slow.
func TestFloodOfEventsDelaysNoOtherNamespace(t *testing.T) {
	for name, took := range map[string]time.Duration{"a fast API server": 0, "a slow API server": time.Second} {
		t.Run(name, func(t *testing.T) {
			s := &sink{took: took}
			busy := true
			alternately := func() bool { busy = !busy; return busy }
			runEvents(t, s, alternately, func(e *Events) {
				addEvents(e, "flood", maxEvents+100)
				<-time.After(time.Minute)
				before := len(s.messages())
				addEvents(e, "shop", 1)
				addEvents(e, "flood", maxEvents)
				<-time.After(time.Minute)
				at := slices.Index(s.messages(), "shop 0")
				if most := before + 2*eventBurst; at < 0 || at > most {
					t.Errorf("the Event was written at position %d, want between %d and %d", at, before, most)
				}
			})
		})
	}
}
