// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// completed returns the IDs of the present probe requests of a guard.
func completed(d *Decision, node string) []string {
	var ids []string
	for _, r := range d.Probes[node] {
		ids = append(ids, r.ID)
	}
	return ids
}

// Services are added, deleted and change endpoints at random while guards probe the new addresses. A new full decision
// equals each amended one.
func TestDecisionEqualsAmendmentWithGuards(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	amended, released, refused := 0, 0, 0
	for range worldtest.Rounds(30) {
		w := worldtest.Small(40)
		w.Domains[0].Shards, w.Probed = 2, map[string][]string{}
		for _, n := range w.Nodes[:2] {
			n.Guarded = true
		}
		var m State
		d := m.Decide(w)
		for step := range 60 {
			now := w.Now.Add(time.Duration(r.IntN(800)) * time.Millisecond)
			w.Now, d.World.Now = now, now
			if !d.ProbesDue.IsZero() && !now.Before(d.ProbesDue) {
				d = m.Decide(w)
				continue
			}
			if r.IntN(3) == 0 {
				node := w.Nodes[r.IntN(2)].Name
				w.Probed[node] = completed(d, node)
				a := Amendment{}
				m.AmendProbed(d, map[string][]string{node: w.Probed[node]}, &a)
				if a.Incomplete {
					t.Fatal("not amended")
				}
				if a.Probes {
					released++
				}
				sameWithProbes(t, w, &m, d)
				continue
			}
			key, c := changeOne(r, w, d, step)
			if a := m.AmendAll(d, map[world.Key]world.Change{key: c}, false); a.Incomplete {
				refused++
				d = m.Decide(w)
				continue
			}
			amended++
			sameWithProbes(t, w, &m, d)
		}
		if t.Failed() {
			return
		}
	}
	if amended < worldtest.Rounds(500) || released < worldtest.Rounds(100) {
		t.Errorf("%d changes amended, %d not, %d probe requests completed", amended, refused, released)
	}
}

// changeOne adds, deletes or edits a Service at random.
func changeOne(r *rand.Rand, w *world.Snapshot, d *Decision, step int) (key world.Key, c world.Change) {
	key = world.Key{Namespace: "shop", Name: fmt.Sprint(r.IntN(12))}
	at := slices.IndexFunc(w.Services, func(s *world.Service) bool { return s.Key == key })
	switch {
	case at < 0:
		c.Is = worldtest.Service(key, step)
		c.Is.UID = fmt.Sprint(step)
		w.Services = append(slices.Clone(w.Services), c.Is)
	case r.IntN(4) == 0:
		c.Was = w.Services[at]
		w.Services = slices.Delete(slices.Clone(w.Services), at, at+1)
	default:
		is := *w.Services[at]
		c.Was, c.Is = w.Services[at], &is
		is.Slices = worldtest.Service(key, r.IntN(9)).Slices
		if d.Plans[key] != nil && r.IntN(2) == 0 {
			is.Assigned = d.Allocation.Services[key].Addrs
		}
		w.Services = slices.Clone(w.Services)
		w.Services[at] = &is
	}
	return key, c
}

// sameWithProbes compares an amended decision with a full one, and what is probed and withheld. Addresses of Services
// that were deleted may still be probed.
func sameWithProbes(t *testing.T, w *world.Snapshot, m *State, d *Decision) {
	t.Helper()
	twin := same(t, w, m, d)
	have := maps.Clone(m.probing.requests)
	maps.DeleteFunc(have, func(a netip.Addr, _ probe) bool { _, is := twin.probing.requests[a]; return !is })
	what := cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmp.AllowUnexported(probe{}, announcedConflict{})}
	if diff := cmp.Diff(twin.probing.requests, have, what); diff != "" {
		t.Errorf("probes (-anew +amended):\n%s", diff)
	}
	if len(twin.probing.withheld) != len(m.probing.withheld) {
		t.Errorf("%d Services are withheld, want %d", len(m.probing.withheld), len(twin.probing.withheld))
	}
}

// A Service that is created while a guard runs is withheld, is announced once the guard has probed its address, and
// neither needs a full decision. It is announced without an answer after a while.
func TestNewAddressesWithGuardsAreAmended(t *testing.T) {
	s := newWatched(t, 3)
	d := s.m.Decide(s.w)
	is := worldtest.Service(web, 1)
	a := s.m.AmendAll(d, map[world.Key]world.Change{web: {Is: is}}, false)
	if a.Incomplete || !a.Probes || len(a.Plans) > 0 || d.Placements.Services[web][0].Reason != place.ReasonProbing {
		t.Fatalf("%+v, %+v", a, d.Placements.Services[web])
	}
	if want := s.w.Now.Add(probeTimeout); !d.ProbesDue.Equal(want) {
		t.Errorf("the next pass is due at %s, want %s", d.ProbesDue, want)
	}
	var node string
	for node = range d.Probes {
		break
	}
	s.m.AmendProbed(d, map[string][]string{node: {"other"}}, &a)
	if a.Incomplete || len(a.Plans) > 0 {
		t.Errorf("announced by another reply: %+v", a)
	}
	other := s.w.Nodes[0].Name
	if other == node {
		other = s.w.Nodes[1].Name
	}
	s.m.AmendProbed(d, map[string][]string{other: completed(d, node)}, &a)
	if a.Incomplete || len(a.Plans) > 0 {
		t.Errorf("announced by another guard: %+v", a)
	}
	s.m.AmendProbed(d, map[string][]string{node: completed(d, node)}, &a)
	if a.Incomplete || a.Plans[web] == nil || len(d.Probes) > 0 || !d.ProbesDue.IsZero() {
		t.Errorf("%+v, probes %v, due %s", a, d.Probes, d.ProbesDue)
	}
}

// The text of the probe requests for one guard is limited, and an address that waits for its turn needs a full
// decision.
func TestAmendedProbesAreLimited(t *testing.T) {
	s := newWatched(t, 3)
	s.w.Pools = worldtest.Small(maxAmendedProbes + 2).Pools
	s.w.Domains[0].Shards = 1
	d := s.m.Decide(s.w)
	for i := range maxAmendedProbes + 1 {
		key := world.Key{Namespace: "shop", Name: fmt.Sprint(i)}
		a := s.m.AmendAll(d, map[world.Key]world.Change{key: {Is: worldtest.Service(key, i)}}, false)
		if a.Incomplete != (i == maxAmendedProbes) {
			t.Fatalf("%d: %t", i, a.Incomplete)
		}
	}
}
