// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A change that does not affect the requirements of a node does not cause a check of the node's rows.
func TestDirtyNodesAreThoseOfTheChange(t *testing.T) {
	w := newDesired()
	first, second := service(1, 1, "10.244.1.10", "10.244.2.10"), service(2, 1, "10.244.1.20")
	ported := service(1, 1, "10.244.0.10", "10.244.2.10")
	ported.Listeners = ported.Listeners[:1]
	for _, step := range []struct {
		what  string
		of    *plan.Service
		is    *plan.Service
		dirty []string
	}{
		{"two come", first, first, []string{"n1", "n3"}},
		{"another comes", second, second, []string{"n3"}},
		{"the same again", first, first, nil},
		{"an equal one", first, service(1, 1, "10.244.1.10", "10.244.2.10"), nil},
		{"one backend moves", first, service(1, 1, "10.244.0.10", "10.244.2.10"), []string{"n2", "n3"}},
		{"a port goes", first, ported, []string{"n1", "n2"}},
		{"all go", first, nil, []string{"n1", "n2"}},
	} {
		w.set(step.of.Key, step.is)
		if got := slices.Sorted(maps.Keys(w.dirty)); !slices.Equal(got, step.dirty) {
			t.Errorf("%s: %v, want %v", step.what, got, step.dirty)
		}
		clear(w.dirty)
	}
	if len(w.nodes) != 1 || len(w.nodes["n3"]) != 1 || len(w.services) != 1 {
		t.Errorf("left: %v", w)
	}
}

// A plan is scanned for each node with a backend of it, whatever few of its ports have backends.
func TestPlanWithManyPortsIsSplitOnce(t *testing.T) {
	w, p := newDesired(), service(1, 1, "10.244.1.10", "10.244.2.10")
	p.Listeners = append(p.Listeners, make([]plan.Listener, wideBackends)...)
	w.set(p.Key, p)
	for node := range w.nodes {
		w.backendsOn(node)
	}
	if len(w.nodes) < 2 || len(w.splitPlans) != 1 {
		t.Errorf("%d plans are split for %d nodes", len(w.splitPlans), len(w.nodes))
	}
}

// The rows of a node that a pod has left may still lead its replies to the shard. A Service that has no other backends
// there is retried until they are written.
func TestChangeAwaitsTheNodeThatItLeaves(t *testing.T) {
	w := newDesired()
	left, now := service(1, 1, "10.244.1.10"), service(1, 1, "10.244.2.10")
	other := service(2, 1, "10.244.2.20")
	w.set(left.Key, left)
	w.set(other.Key, other)
	clear(w.dirty)
	w.set(now.Key, now)
	broken := map[string]error{nodeOf(netip.MustParseAddr("10.244.1.10")): errors.New("refused")}
	if w.brokenFor(dataplane.Change{Key: now.Key, Want: now}, broken) == nil {
		t.Error("the Service that left the node does not wait for it")
	}
	if err := w.brokenFor(dataplane.Change{Key: other.Key, Want: other}, broken); err != nil {
		t.Errorf("a Service that never was on the node: %v", err)
	}
	clear(w.dirty) // The rows are written.
	if err := w.brokenFor(dataplane.Change{Key: now.Key, Want: now}, broken); err != nil {
		t.Errorf("once they are written: %v", err)
	}
}

// A Service at an address with source ranges is applied once those of the Service are written that admits fragments for
// both, also if both change at a time. Its error does not name the other one, which may be another tenant's.
func TestChangeAwaitsWhoAdmitsItsFragments(t *testing.T) {
	w, wide := newDesired(), service(1, 1, "10.244.1.10")
	wide.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.0/24")}
	joins := beside(wide, "z", 81)
	joins.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.128/25")}
	w.set(wide.Key, wide)
	w.set(joins.Key, joins)
	for _, changes := range [][]dataplane.Change{
		{{Key: joins.Key, Want: joins}}, {{Key: joins.Key, Want: joins}, {Key: wide.Key, Want: wide}},
	} {
		w.admitters(changes)
		both := []world.Key{joins.Key, wide.Key}
		failed := w.recordAdmitters(t.Context(), changes, both, []error{nil, errors.New("refused s1")})
		if err := failed[joins.Key]; err == nil || strings.Contains(err.Error(), wide.Key.Name) {
			t.Errorf("%d changes: %v", len(changes), err)
		}
	}
	if failed := w.recordAdmitters(t.Context(), nil, []world.Key{wide.Key}, []error{nil}); len(failed) > 0 {
		t.Errorf("written: %v", failed)
	}
	if before, after := w.admitters(nil); len(before)+len(after) > 0 {
		t.Errorf("once it is written: %v, %v", before, after)
	}
}

// If a Service joins others at an address, the one that admits fragments for all is written first. If one goes, the one
// that admits more then is written afterwards.
func TestFragmentsAreAdmittedFromLessFirst(t *testing.T) {
	w, first := newDesired(), service(1, 1, "10.244.1.10")
	first.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.0/24")}
	joins := beside(first, "z", 81)
	joins.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.128/25")}
	w.set(first.Key, first)
	w.set(joins.Key, joins)
	before, after := w.admitters([]dataplane.Change{{Key: joins.Key, Want: joins}})
	if !slices.Equal(before, []world.Key{first.Key}) || len(after) > 0 {
		t.Errorf("one joins: %v, %v", before, after)
	}
	moved := service(2, 1, "10.244.1.10")
	moved.Key, moved.SourceRanges = first.Key, first.SourceRanges
	for what, now := range map[string]*plan.Service{"goes": nil, "leaves the address": moved} {
		w.set(first.Key, first)
		clear(w.admitting)
		w.set(first.Key, now)
		before, after = w.admitters([]dataplane.Change{{Key: first.Key, Want: now}})
		if !slices.Equal(after, []world.Key{joins.Key}) || len(before) > 0 {
			t.Errorf("the first one %s: %v, %v", what, before, after)
		}
	}
}
