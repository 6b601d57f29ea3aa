// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Services are added, deleted and change endpoints at random. A new full decision equals each amended one.
func TestDecisionEqualsAmendment(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	amended, spoilt := 0, 0
	for range worldtest.Rounds(250) {
		choices := make([]byte, 300)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		w := worldtest.Random(choices)
		all := w.Services
		for _, s := range all {
			s.Assigned, s.AssignedHosts, s.Given = nil, nil, nil
		}
		var m State
		w.Services = nil
		d := m.Decide(w)
		for now := range 40 {
			was := all[r.IntN(len(all))]
			at := slices.IndexFunc(w.Services, func(s *world.Service) bool { return s.Key == was.Key })
			var c world.Change
			switch {
			case at < 0:
				is := *was
				is.Created = time.Unix(int64(10+now), 0)
				c.Is = &is
				w.Services = append(slices.Clone(w.Services), &is)
			case r.IntN(3) == 0:
				c.Was = w.Services[at]
				w.Services = slices.Delete(slices.Clone(w.Services), at, at+1)
			default:
				c.Was = w.Services[at]
				is := *c.Was
				c.Is = &is
				is.Slices = all[r.IntN(len(all))].Slices
				if r.IntN(2) == 0 {
					is.Assigned = d.Allocation.Services[is.Key].Addrs
					is.Given = is.Assigned
				}
				w.Services = slices.Clone(w.Services)
				w.Services[at] = &is
			}
			if m.Amend(d, was.Key, c) {
				amended++
				same(t, w, &m, d)
			} else {
				spoilt++
				d = m.Decide(w)
			}
		}
		if t.Failed() {
			t.Fatalf("choices %x", choices)
		}
	}
	if amended < worldtest.Rounds(5000) {
		t.Errorf("%d changes amended, %d not", amended, spoilt)
	}
}

func (o *overlay) clone() overlay {
	return overlay{grants: maps.Clone(o.grants), external: maps.Clone(o.external), leases: maps.Clone(o.leases),
		anchors: maps.Clone(o.anchors)}
}

// same compares an amended decision with a full one, and returns the state after that.
func same(t *testing.T, w *world.Snapshot, m *State, got *Decision) State {
	t.Helper()
	twin := State{overlay: m.overlay.clone(), probing: m.probing, inputs: map[world.Key]planInputs{}}
	twin.probing.requests = maps.Clone(m.probing.requests)
	for key, in := range m.inputs {
		twin.inputs[key] = planInputs{vips: in.vips} // they may have been announced
	}
	want := twin.Decide(w)
	what := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}), cmpopts.EquateEmpty()}
	// The reasons of Services without addresses may change with each added Service.
	bare := cmp.Transformer("bare", func(o ipam.Outcome) []netip.Addr { return o.Addrs })
	if d := cmp.Diff(want.Allocation.Services, got.Allocation.Services, what, bare); d != "" {
		t.Errorf("outcomes (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(want.Placements.Services, got.Placements.Services, what,
		cmpopts.IgnoreFields(place.Placement{}, "Message")); d != "" {
		t.Errorf("placements (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(want.Topology, got.Topology, what); d != "" {
		t.Errorf("topology (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(want.Plans, got.Plans, what); d != "" {
		t.Errorf("plans (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(twin.overlay.grants, m.overlay.grants, what, cmp.AllowUnexported(grant{}),
		cmpopts.IgnoreFields(grant{}, "since")); d != "" {
		t.Errorf("grants (-anew +amended):\n%s", d)
	}
	return twin
}

// Replacing the oldest Service of a shard needs no full decision, although the router port has its address.
func TestRemovedAnchorIsAmended(t *testing.T) {
	old, young := worldtest.Service(world.Key{Namespace: "shop", Name: "old"}, 1), worldtest.Service(web, 2)
	w := worldtest.Small(3, old, young)
	var m State
	d := m.Decide(w)
	if !m.Amend(d, old.Key, world.Change{Was: old}) {
		t.Fatal("not amended")
	}
	w.Services = []*world.Service{young}
	same(t, w, &m, d)
	if a := d.Topology.Domains[0].Shards[0].Anchors; len(a) != 1 || a[0].Addr() != d.Allocation.Services[web].Addrs[0] {
		t.Errorf("anchors %v, want the address of %s", a, web)
	}
	if !m.Amend(d, web, world.Change{Was: young}) {
		t.Fatal("the last one is not amended")
	}
	w.Services = nil
	same(t, w, &m, d)
	next := worldtest.Service(world.Key{Namespace: "shop", Name: "next"}, 3)
	if !m.Amend(d, next.Key, world.Change{Is: next}) {
		t.Fatal("the first one is not amended")
	}
	w.Services = []*world.Service{next}
	same(t, w, &m, d)
}

// The time of an amended decision is that of the last full one, which may be long ago. The wait for a zone begins with
// the next full one, which follows each amendment.
func TestAmendedGrantsWaitForTheirZone(t *testing.T) {
	var m State
	start := time.Unix(100_000, 0)
	at := func(now time.Time, services ...*world.Service) *Decision {
		w := worldtest.Small(3, services...)
		w.Now, w.Cluster.NoDatabase = now, true
		for _, n := range w.Nodes {
			n.Zone, n.Agent = n.Name, &world.ZoneAgent{}
		}
		return m.Decide(w)
	}
	d := at(start)
	s := worldtest.Service(web, 1)
	if !m.Amend(d, web, world.Change{Is: s}) || !d.MayAwaitZone(web) {
		t.Fatal("an amended grant does not wait")
	}
	later := start.Add(time.Hour)
	if d := at(later, s); !d.MayAwaitZone(web) || !d.Due.Equal(later.Add(world.ProgramWait)) {
		t.Errorf("waits %t, due %v", d.MayAwaitZone(web), d.Due)
	}
	d = at(later, s)
	shown := *s
	shown.Assigned = d.Allocation.Services[web].Addrs
	if !m.Amend(d, web, world.Change{Was: s, Is: &shown}) || d.MayAwaitZone(web) {
		t.Error("an address in the status waits")
	}
}
