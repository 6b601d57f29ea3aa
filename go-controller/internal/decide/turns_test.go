// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// beside returns a decision about a Service of the bank beside Services of another tenant.
func beside(m *State, others []*world.Service, limits world.Limits) (*Decision, *world.Service) {
	victim := worldtest.Service(world.Key{Namespace: "bank", Name: "web"}, 1)
	w := worldtest.Small(8, append([]*world.Service{victim}, others...)...)
	w.Cluster.Limits = limits
	return m.Decide(w), victim
}

// withEndpoints returns the Service with n endpoints, ready or not.
func withEndpoints(s *world.Service, n int, ready bool) *world.Service {
	is, slice := *s, *s.Slices[0]
	slice.Endpoints = nil
	for i := range n {
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{
			Addr: netip.AddrFrom4([4]byte{10, 244, 0, byte(10 + i)}), Node: "n0", Ready: ready, Serving: ready})
	}
	is.Slices = []*world.Slice{&slice}
	return &is
}

// As long as one tenant exceeds the limit of the cluster, the endpoints of another one need no full decision to be
// served, although one must follow.
func TestEndpointsChangeWhileTheClusterIsFull(t *testing.T) {
	var large []*world.Service
	for i := range 3 {
		s := worldtest.Service(world.Key{Namespace: "evil", Name: fmt.Sprint(i)}, 2+i)
		large = append(large, withEndpoints(s, 40, true))
	}
	var m State
	d, victim := beside(&m, large, world.Limits{Backends: 100})
	if d.Plans[large[2].Key].Excess.Limit == 0 {
		t.Fatal("the cluster is not full")
	}
	is := withEndpoints(victim, 2, true)
	a := m.AmendAll(d, map[world.Key]world.Change{victim.Key: {Was: victim, Is: is}}, false)
	if p := a.Plans[victim.Key]; p == nil || len(p.Listeners[0].Backends) != 2 || !a.Incomplete {
		t.Fatalf("plan %v, incomplete %t; want two backends, and a full decision after it", p, a.Incomplete)
	}
	// Another change comes before the full decision.
	last := withEndpoints(victim, 1, true)
	a = m.AmendAll(d, map[world.Key]world.Change{victim.Key: {Was: is, Is: last}}, true)
	if p := a.Plans[victim.Key]; p == nil || len(p.Listeners[0].Backends) != 1 {
		t.Fatalf("plan %v, want one backend", p)
	}
	// What is beyond the share of a namespace waits.
	most := withEndpoints(large[0], 99, true)
	a = m.AmendAll(d, map[world.Key]world.Change{large[0].Key: {Was: large[0], Is: most}}, true)
	if len(a.Plans) != 0 {
		t.Fatalf("plans %v beyond the share", a.Plans)
	}
}

// However much a tenant changes, endpoints of another one come first, and the rest in the amendments that follow.
func TestSmallChangesAreAmendedFirst(t *testing.T) {
	var wide []*world.Service
	changes := map[world.Key]world.Change{}
	for i := range 5 {
		s := worldtest.Wide(150, 100, 2)
		s.Key = world.Key{Namespace: "a-lot", Name: fmt.Sprint(i)}
		slice := *s.Slices[0]
		slice.Endpoints = append([]world.Endpoint(nil), slice.Endpoints...)
		slice.Endpoints[0].Ready = false
		is := *s
		is.Slices = []*world.Slice{&slice}
		wide = append(wide, s)
		changes[s.Key] = world.Change{Was: s, Is: &is}
	}
	var m State
	d, victim := beside(&m, wide, world.Limits{})
	changes[victim.Key] = world.Change{Was: victim, Is: withEndpoints(victim, 1, true)}
	a := m.AmendAll(d, changes, false)
	if a.Plans[victim.Key] == nil || a.Incomplete {
		t.Fatalf("%d plans, incomplete %t; want that of the small Service among them", len(a.Plans), a.Incomplete)
	}
	rounds := 1
	for ; len(a.Later) > 0 && rounds < 10; rounds++ {
		if len(a.Plans)+len(a.Later) > 6 || len(a.Plans) == 0 {
			t.Fatalf("%d plans and %d left", len(a.Plans), len(a.Later))
		}
		a = m.AmendAll(d, a.Later, false)
	}
	if rounds < 2 || len(a.Later) > 0 {
		t.Errorf("%d rounds, %d changes left", rounds, len(a.Later))
	}
	for key, c := range changes {
		if s, _ := m.Planned(key); s != c.Is {
			t.Errorf("%s is not amended", key)
		}
	}
}

// A full decision leaves what a tenant changes beyond a batch to amendments, so that it does not keep others waiting.
// It needs no other decision after them.
func TestFullDecisionLeavesWorkToAmendments(t *testing.T) {
	var wide []*world.Service
	for i := range 5 {
		s := worldtest.Wide(150, 100, 2)
		s.Key = world.Key{Namespace: "a-lot", Name: fmt.Sprint(i)}
		wide = append(wide, s)
	}
	var m State
	d, _ := beside(&m, wide, world.Limits{})
	if len(d.Later) > 0 {
		t.Fatalf("%d Services have no first plan", len(d.Later))
	}
	w := *d.World
	w.Services, w.Changed = slices.Clone(w.Services), map[world.Key]world.Change{}
	for i, s := range w.Services[1:] {
		is := withEndpoints(s, 99, true)
		w.Changed[s.Key] = world.Change{Was: s, Is: is, SpecChanged: i == 4}
		w.Services[1+i] = is
	}
	d = m.Decide(&w)
	edited := w.Services[5].Key
	if _, left := d.Later[edited]; left || len(d.Later) == 0 || len(d.Later) == 5 {
		t.Fatalf("%d changes left, that of the edited Service %t; want some, not that one", len(d.Later), left)
	}
	for rounds := 0; len(d.Later) > 0; rounds++ {
		a := m.AmendAll(d, d.Later, false)
		if a.Incomplete || rounds > 5 {
			t.Fatalf("incomplete %t, %d changes left", a.Incomplete, len(a.Later))
		}
		d.Later = a.Later
	}
	w.Changed = nil
	same(t, &w, &m, d)
}
