// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A Service that grows beyond the limit keeps its address, and its plan contains nothing that OVN would serve: it is
// not partially programmed. Another Service is still served.
func TestServiceOverLimitIsWithdrawnAndReported(t *testing.T) {
	var m decide.State
	s, other := worldtest.Service(web, 1), worldtest.Service(world.Key{Namespace: "shop", Name: "other"}, 2)
	grown := *s
	slice := *s.Slices[0]
	for i := range 4 {
		e := slice.Endpoints[0]
		for range i + 1 {
			e.Addr = e.Addr.Next()
		}
		slice.Endpoints = append(slices.Clip(slice.Endpoints), e)
	}
	grown.Slices = []*world.Slice{&slice}
	var last *decide.Decision
	look := func(s *world.Service) (*decide.Decision, *Builder) {
		w := worldtest.Small(5, s, other)
		w.Cluster.Limits.ServiceBackends = 4
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
		d := m.Decide(w)
		if last != nil {
			// OVN still has the previous decision.
			if got := NewBuilder(d, programmed(last)).Services(&Cache{})[web].Announced; got != nil {
				t.Errorf("OVN has %d listeners and is to have %d: %+v", len(last.Plans[web].Listeners), len(d.Plans[web].Listeners),
					got)
			}
		}
		last = d
		return d, NewBuilder(d, programmed(d))
	}
	before, v := look(s)
	if got := v.Services(&Cache{})[web].Announced; got.Reason != v1alpha1.ReasonAnnounced {
		t.Fatalf("within the limit: %+v", got)
	}
	d, v := look(&grown)
	said := v.Services(&Cache{})
	if got := said[web].Announced; got.Reason != v1alpha1.ReasonTooManyBackends ||
		!strings.Contains(got.Message, "more than the limit of 4") ||
		!strings.Contains(got.Message, "--max-service-backends") {
		t.Errorf("beyond the limit: %+v", got)
	}
	if got := said[other.Key].Announced; got.Reason != v1alpha1.ReasonAnnounced {
		t.Errorf("the other one: %+v", got)
	}
	if !slices.Equal(d.Allocation.Services[web].Addrs, before.Allocation.Services[web].Addrs) ||
		len(d.Plans[web].Listeners) != 0 {
		t.Errorf("addresses %v, plan %+v", d.Allocation.Services[web].Addrs, d.Plans[web])
	}
	_, v = look(s)
	if got := v.Services(&Cache{})[web].Announced; got.Reason != v1alpha1.ReasonAnnounced {
		t.Errorf("within the limit again: %+v", got)
	}
}

// The endpoints of pods with a primary user-defined network are addresses where nothing answers a Service.
func TestNamespaceWithPrimaryNetworkIsRefused(t *testing.T) {
	w := worldtest.Small(5, worldtest.Service(web, 1))
	w.PrimaryNetworks = map[string]bool{"shop": true}
	var m decide.State
	got := statusOf(&m, w)
	if got == nil || len(got.Addrs) != 1 || got.Announced == nil || got.Announced.Status != metav1.ConditionFalse ||
		got.Announced.Reason != v1alpha1.ReasonUnsupported ||
		!strings.Contains(got.Announced.Message, `namespace "shop" have a primary user-defined network`) {
		t.Errorf("got %+v", got)
	}
	if d := m.Decide(w); len(d.Plans) != 0 {
		t.Errorf("plans %v", d.Plans)
	}
	w.Announced = map[netip.Addr]bool{got.Addrs[0]: true}
	if d := m.Decide(w); len(d.Plans) != 1 || !slices.Equal(w.ServicesToVerify(), []world.Key{web}) {
		t.Errorf("announced before: plans %v", d.Plans)
	}
	w.LastAnnounced, w.Announced = w.Announced, nil
	if d := m.Decide(w); len(d.Plans) != 1 {
		t.Errorf("announced when the database could last be read: plans %v", d.Plans)
	}
	w.PrimaryNetworks, w.LastAnnounced = nil, nil
	if got := statusOf(&m, w); got == nil || got.Announced == nil || got.Announced.Status != metav1.ConditionTrue {
		t.Errorf("on the default network: %+v", got)
	}
}

// The writer holds the statuses of all Services, and a tenant decides how many addresses a Service lists.
func TestMessagesOfStatusesAreBounded(t *testing.T) {
	s := worldtest.Service(web, 1)
	w := worldtest.Small(100, s)
	w.Pools[0].ExternalIPs = true
	for a := netip.MustParseAddr("10.50.0.101"); len(s.ExternalIPs) < 90; a = a.Next() {
		s.ExternalIPs = append(s.ExternalIPs, a)
	}
	s.Limits = []string{strings.Repeat("limit", 1000)}
	w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}
	var m decide.State
	d := m.Decide(w)
	got := NewBuilder(d, programmed(d)).Services(&Cache{})[web]
	for _, message := range []string{got.Allocated.Message, got.Announced.Message} {
		if len(message) > 1024 {
			t.Errorf("a message of %d bytes: %.100s...", len(message), message)
		}
	}
	if len(got.External) < 90 {
		t.Errorf("the Service has %d addresses", len(got.External))
	}
}

// withKernels turns a cluster into one with OpenShift SDN, in which each node can be a gateway.
func withKernels(w *world.Snapshot) *world.Snapshot {
	w.Cluster.OpenShiftSDN = true
	for i, n := range w.Nodes {
		own := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 50, 0, byte(11 + i)}), 24)
		n.Chassis = n.Name
		n.Kernel = &world.Kernel{Agent: netip.AddrPortFrom(own.Addr(), 9484),
			Interfaces: map[string][]netip.Prefix{"eth0": {own}}}
	}
	return w
}

// With OpenShift SDN, kube-proxy serves a Service however wide it is. The limits bound only what the controller holds.
func TestServiceOverLimitIsServedByKernels(t *testing.T) {
	s := worldtest.Service(web, 1)
	s.LocalPolicy = true
	w := withKernels(worldtest.Small(5, s))
	w.Cluster.Limits.Backends = 1
	s.Ports = append(s.Ports, world.Port{Name: "https", Protocol: world.TCP, Port: 443})
	w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n1"}}
	var m decide.State
	d := m.Decide(w)
	if d.Plans[web].Excess.Limit == plan.NoLimit {
		t.Fatal("the Service is within the limit")
	}
	got := NewBuilder(d, programmed(d)).Services(&Cache{})[web].Announced
	if got.Reason != v1alpha1.ReasonAnnounced || !strings.Contains(got.Message, "is assigned to node n1") {
		t.Errorf("%+v", got)
	}
}
