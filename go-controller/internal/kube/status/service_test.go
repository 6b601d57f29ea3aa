// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var (
	early            = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later            = early.Add(time.Hour)
	announcedVerdict = Verdict{metav1.ConditionTrue, v1alpha1.ReasonAnnounced, "on gateway n1"}
)

func desired(addrs ...string) *Service {
	s := &Service{Allocated: Verdict{metav1.ConditionTrue, v1alpha1.ReasonAllocated, "from pool lan"},
		Announced: &announcedVerdict}
	for _, a := range addrs {
		s.Addrs = append(s.Addrs, netip.MustParseAddr(a))
	}
	s.Allocated.Message = strings.Join(addrs, ", ") + " from pool lan"
	return s
}

func write(t *testing.T, s *Service, have *corev1.Service, now time.Time) *corev1.Service {
	t.Helper()
	before := have.DeepCopy()
	next, changed := s.Merged(have, now)
	if !changed {
		t.Fatal("nothing to write")
	}
	if have.String() != before.String() {
		t.Fatal("the object of the informer was changed")
	}
	return next
}

func condition(t *testing.T, s *corev1.Service, kind string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(s.Status.Conditions, kind)
	if c == nil {
		t.Fatalf("no condition %s", kind)
	}
	return *c
}

func TestSameStatusIsNotWrittenAgain(t *testing.T) {
	have := write(t, desired("10.0.0.1", "fd00::1"), &corev1.Service{}, early)
	if _, changed := desired("10.0.0.1", "fd00::1").Merged(have, later); changed {
		t.Error("the same status is written again")
	}
}

func TestIngressListsPortsOnRequest(t *testing.T) {
	have := &corev1.Service{}
	have.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP},
		{Port: 53, Protocol: corev1.ProtocolUDP}}
	want := desired("10.0.0.1", "fd00::1")
	want.ListPorts = true
	have = write(t, want, have, early)
	ingress := have.Status.LoadBalancer.Ingress
	if len(ingress) != 2 || len(ingress[0].Ports) != 2 || ingress[0].Ports[1].Port != 53 ||
		ingress[0].Ports[1].Protocol != corev1.ProtocolUDP || len(ingress[1].Ports) != 0 {
		t.Errorf("ingress: %+v", ingress)
	}
	if _, changed := want.Merged(have, later); changed {
		t.Error("the same status is written again")
	}
	want.ListPorts = false
	if have = write(t, want, have, later); len(have.Status.LoadBalancer.Ingress[0].Ports) != 0 {
		t.Errorf("ingress: %+v", have.Status.LoadBalancer.Ingress)
	}
}

func TestIngressHasIPMode(t *testing.T) {
	proxy := corev1.LoadBalancerIPModeProxy
	have := &corev1.Service{}
	have.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1", IPMode: &proxy}}
	next := write(t, desired("10.0.0.1"), have, early)
	if got := next.Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IPMode == nil ||
		*got[0].IPMode != corev1.LoadBalancerIPModeVIP {
		t.Errorf("ingress: %+v", got)
	}
}

func TestStatusIsNotWrittenAgainIfServerDropsIPMode(t *testing.T) {
	have := write(t, desired("10.0.0.1"), &corev1.Service{}, early)
	have.Status.LoadBalancer.Ingress[0].IPMode = nil
	if next, changed := desired("10.0.0.1").Merged(have, later); changed {
		t.Errorf("written again: %+v", next.Status)
	}
}

func TestChangedReasonKeepsTransitionTime(t *testing.T) {
	have := write(t, desired("10.0.0.1"), &corev1.Service{}, early)
	foreign := metav1.Condition{Type: "example.org/Other", Status: metav1.ConditionTrue}
	have.Status.Conditions = append(have.Status.Conditions, foreign)

	s := desired("10.0.0.1")
	s.Announced = &Verdict{metav1.ConditionTrue, v1alpha1.ReasonAnnounced, "on gateway n2"}
	next := write(t, s, have, later)
	if got := condition(t, next, v1alpha1.ConditionAnnounced); got.Message != "on gateway n2" ||
		!got.LastTransitionTime.Time.Equal(early) {
		t.Errorf("another message: %+v", got)
	}
	s.Announced = &Verdict{metav1.ConditionFalse, v1alpha1.ReasonNoActiveGateway, "none"}
	next = write(t, s, next, later)
	if got := condition(t, next, v1alpha1.ConditionAnnounced); !got.LastTransitionTime.Time.Equal(later) {
		t.Errorf("another status: %+v", got)
	}
	if got := condition(t, next, "example.org/Other"); got != foreign {
		t.Errorf("another's condition: %+v", got)
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	unknown := desired("10.0.0.1")
	unknown.Announced = nil
	first := write(t, unknown, &corev1.Service{}, early)
	if got := condition(t, first, v1alpha1.ConditionAnnounced); got.Status != metav1.ConditionUnknown ||
		got.Reason != v1alpha1.ReasonProgramming {
		t.Errorf("of a new address: %+v", got)
	}

	have := write(t, desired("10.0.0.1"), &corev1.Service{}, early)
	if _, changed := unknown.Merged(have, later); changed {
		t.Error("what was announced is taken back although the address is the same")
	}
	moved := desired("10.0.0.2")
	moved.Announced = nil
	if got := condition(t, write(t, moved, have, later),
		v1alpha1.ConditionAnnounced); got.Reason != v1alpha1.ReasonProgramming {
		t.Errorf("of another address: %+v", got)
	}
}

func TestLongMessagesAreTruncated(t *testing.T) {
	s := desired("10.0.0.1")
	s.Allocated.Message = strings.Repeat("x", 40000)
	have := write(t, s, &corev1.Service{}, early)
	if got := condition(t, have, v1alpha1.ConditionAllocated); len(got.Message) != maxMessageLength {
		t.Errorf("%d bytes, want %d", len(got.Message), maxMessageLength)
	}
	if _, changed := s.Merged(have, later); changed {
		t.Error("a cut message is written again")
	}
}

// Parts of messages come from others. An error of several objects has a line for each.
func TestMessagesAreOneLineWithoutControlCharacters(t *testing.T) {
	s := desired("10.0.0.1")
	s.Allocated.Message = "first\nsecond \x1b[31m\u202e"
	have := write(t, s, &corev1.Service{}, early)
	if got := condition(t, have, v1alpha1.ConditionAllocated); got.Message != `first; second \u001b[31m\u202e` {
		t.Errorf("message %q", got.Message)
	}
	if _, changed := s.Merged(have, later); changed {
		t.Error("an escaped message is written again")
	}
}

func TestReleaseRemovesOnlyOwnFields(t *testing.T) {
	have := write(t, desired("10.0.0.1"), &corev1.Service{}, early)
	have.Status.Conditions = append(have.Status.Conditions, metav1.Condition{Type: "example.org/Other"})
	next := write(t, &Service{Release: true}, have, later)
	if len(next.Status.LoadBalancer.Ingress) != 0 || len(next.Status.Conditions) != 1 {
		t.Errorf("status: %+v", next.Status)
	}
	if _, changed := (&Service{Release: true}).Merged(next, later); changed {
		t.Error("released twice")
	}

	// The ingress of a Service to which we never allocated an address belongs to another controller.
	waits := desired()
	waits.Allocated.Status = metav1.ConditionFalse
	have = write(t, waits, &corev1.Service{}, early)
	have.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	if next := write(t, &Service{Release: true}, have, later); len(next.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("status: %+v", next.Status)
	}
}

// The controller of the Service's new class wrote first: only the addresses that we allocated are removed.
func TestReleaseKeepsAnotherControllersIngress(t *testing.T) {
	theirs := []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example.org"}}
	have := write(t, desired("10.0.0.1", "fd00::1"), &corev1.Service{}, early)
	have.Status.LoadBalancer.Ingress = append(have.Status.LoadBalancer.Ingress[:1:1], theirs...)
	next := write(t, &Service{Release: true}, have, later)
	if got := next.Status.LoadBalancer.Ingress; !slices.EqualFunc(got, theirs, sameIngress) ||
		len(next.Status.Conditions) != 0 {
		t.Errorf("ingress %+v, conditions %+v", got, next.Status.Conditions)
	}
}

func sameIngress(a, b corev1.LoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}

func TestForeignIngressIsKept(t *testing.T) {
	have := &corev1.Service{}
	have.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	refused := desired()
	refused.LeaveIngress, refused.Allocated.Status = true, metav1.ConditionFalse
	next := write(t, refused, have, early)
	if got := next.Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != "192.0.2.1" {
		t.Errorf("ingress: %+v", got)
	}
	if _, changed := refused.Merged(next, later); changed {
		t.Error("the same status is written again")
	}
}

// A host name that was written after the decision is not overwritten before another decision knows it.
func TestNewHostNameAwaitsDecision(t *testing.T) {
	have := &corev1.Service{}
	have.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.org"}}
	s := desired("10.0.0.1")
	if s.Expects(have) {
		t.Error("the status may be written over a host name that appeared since")
	}
	if s.PreviousHosts = []string{"lb.example.org"}; !s.Expects(have) {
		t.Error("the status may not be written over the host name that was known")
	}
}

// The next controller reads the external addresses from the condition.
func TestExternalIPsKeepTheirSpelling(t *testing.T) {
	s := desired("10.0.0.1")
	s.ListsExternal = true
	next := write(t, s, &corev1.Service{}, early)
	if got := condition(t, next, v1alpha1.ConditionExternalIPs); got.Status != metav1.ConditionFalse {
		t.Errorf("none is its own: %+v", got)
	}
	for a := netip.MustParseAddr("2001:1db8:ffff:ffff:ffff:ffff:ffff:f000"); len(s.External) < 799; a = a.Next() {
		s.External = append(s.External, a)
	}
	next = write(t, s, next, early)
	next.Spec.Type = corev1.ServiceTypeLoadBalancer
	if n := len(condition(t, next, v1alpha1.ConditionExternalIPs).Message); n > 32768 {
		t.Errorf("a message of %d bytes", n)
	}
	read, _ := convert.Service(next, nil, convert.Options{DefaultClass: true})
	if got := read.HeldExternalIPs; !slices.Equal(got, s.External) {
		t.Errorf("%d addresses read back, want %d", len(got), len(s.External))
	}
	s.ListsExternal, s.External = false, nil
	if next = write(t, s, next, later); meta.FindStatusCondition(next.Status.Conditions,
		v1alpha1.ConditionExternalIPs) != nil {
		t.Error("the condition outlives spec.externalIPs")
	}
}
