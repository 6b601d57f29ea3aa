// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A tenant takes the oldest Service out of its shard and back, by a label or by deleting it. That changes the anchor
// once, and not each time: not in a decision, in an amendment, or in a process that has started meanwhile.
func TestReturningServiceDoesNotTakeTheAnchorBack(t *testing.T) {
	old, young := worldtest.Service(world.Key{Namespace: "shop", Name: "old"}, 1), worldtest.Service(web, 2)
	old.Requested = []netip.Addr{netip.MustParseAddr("10.50.0.102")}
	away := *old
	away.Labels = map[string]string{world.LabelServiceProxyName: "other"}
	want := netip.MustParseAddr("10.50.0.100")
	check := func(t *testing.T, d *Decision) {
		t.Helper()
		if a := d.Topology.Domains[0].Shards[0].Anchors; len(a) != 1 || a[0].Addr() != want {
			t.Errorf("anchors %v, want %s", a, want)
		}
	}
	t.Run("decided", func(t *testing.T) {
		var m State
		if a := m.Decide(worldtest.Small(3, old, young)).Topology.Domains[0].Shards[0].Anchors; a[0].Addr() == want {
			t.Fatalf("anchors %v: not of the oldest Service", a)
		}
		for range 3 {
			check(t, m.Decide(worldtest.Small(3, &away, young)))
			check(t, m.Decide(worldtest.Small(3, old, young)))
		}
	})
	t.Run("amended", func(t *testing.T) {
		w := worldtest.Small(3, old, young)
		var m State
		d := m.Decide(w)
		for _, c := range []world.Change{{Was: old}, {Is: old}, {Was: old}} {
			if !m.Amend(d, old.Key, c) {
				t.Fatal("not amended")
			}
			check(t, d)
		}
		check(t, m.Decide(w)) // It has returned.
	})
	t.Run("restarted", func(t *testing.T) {
		w := worldtest.Small(3, old, young)
		w.Domains[0].Anchors = map[int][]netip.Addr{0: {want}}
		var m State
		check(t, m.Decide(w))
		// What this process decides counts from then on: the status is written later.
		w = worldtest.Small(3, old)
		w.Domains[0].Anchors = map[int][]netip.Addr{0: {want}}
		m.Decide(w)
		w = worldtest.Small(3, old, young)
		w.Domains[0].Anchors = map[int][]netip.Addr{0: {want}}
		want = old.Requested[0]
		check(t, m.Decide(w))
	})
}

// An amendment that is refused leaves the anchor of the decision as it was, also for the next decision.
func TestRefusedAmendmentKeepsTheAnchor(t *testing.T) {
	old, young := worldtest.Service(world.Key{Namespace: "shop", Name: "old"}, 1), worldtest.Service(web, 2)
	w := worldtest.Small(3, old, young)
	w.Cluster.Limits.NamespaceBackends = 1
	var m State
	d := m.Decide(w)
	want := d.Topology.Domains[0].Shards[0].Anchors[0]
	if m.Amend(d, old.Key, world.Change{Was: old}) {
		t.Fatal("amended although a limit is exceeded")
	}
	for _, is := range []*Decision{d, m.Decide(w)} {
		if a := is.Topology.Domains[0].Shards[0].Anchors; len(a) != 1 || a[0] != want {
			t.Errorf("anchors %v, want %s", a, want)
		}
	}
}
