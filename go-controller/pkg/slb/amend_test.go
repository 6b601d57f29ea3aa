// SPDX-License-Identifier: Apache-2.0

package slb

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
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world/worldtest"
)

// Services are added, deleted and change endpoints at random. A new full decision equals each amended one.
func TestDecisionEqualsAmendment(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	amended, spoilt := 0, 0
	for range 250 {
		choices := make([]byte, 300)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		w, _ := worldtest.Random(choices)
		all := w.Services
		for _, s := range all {
			s.Assigned = nil
		}
		var m state
		w.Services = nil
		d := m.decide(w)
		for now := range 40 {
			was := all[r.IntN(len(all))]
			at := slices.IndexFunc(w.Services, func(s *world.Service) bool { return s.Key == was.Key })
			var c kube.Change
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
					is.Assigned = d.allocation.Services[is.Key].Addrs
				}
				w.Services = slices.Clone(w.Services)
				w.Services[at] = &is
			}
			if m.amend(d, was.Key, c) {
				amended++
				same(t, w, &m, d)
			} else {
				spoilt++
				d = m.decide(w)
			}
		}
		if t.Failed() {
			t.Fatalf("choices %x", choices)
		}
	}
	if amended < 1000 {
		t.Errorf("%d changes amended, %d not", amended, spoilt)
	}
}

func same(t *testing.T, w *world.Snapshot, m *state, got *decision) {
	t.Helper()
	twin := state{grants: maps.Clone(m.grants), leases: maps.Clone(m.leases)}
	want := twin.decide(w)
	what := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}), cmpopts.EquateEmpty()}
	// The reasons of Services without addresses may change with each added Service.
	bare := cmp.Transformer("bare", func(o ipam.Outcome) []netip.Addr { return o.Addrs })
	if d := cmp.Diff(want.allocation.Services, got.allocation.Services, what, bare); d != "" {
		t.Errorf("outcomes (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(want.placements.Services, got.placements.Services, what,
		cmpopts.IgnoreFields(place.Placement{}, "Message")); d != "" {
		t.Errorf("spots (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(want.fabric, got.fabric, what); d != "" {
		t.Errorf("fabric (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(want.plans, got.plans, what); d != "" {
		t.Errorf("plans (-anew +amended):\n%s", d)
	}
	if d := cmp.Diff(twin.grants, m.grants, what, cmp.AllowUnexported(grant{})); d != "" {
		t.Errorf("grants (-anew +amended):\n%s", d)
	}
}

// Replacing the oldest Service of a shard needs no full decision, although the router port has its address.
func TestRemovedAnchorIsAmended(t *testing.T) {
	old, young := service(world.Key{Namespace: "shop", Name: "old"}, 1), service(web, 2)
	w := small(3, old, young)
	var m state
	d := m.decide(w)
	if !m.amend(d, old.Key, kube.Change{Was: old}) {
		t.Fatal("not amended")
	}
	w.Services = []*world.Service{young}
	same(t, w, &m, d)
	if a := d.fabric.Domains[0].Shards[0].Anchors; len(a) != 1 || a[0].Addr() != d.allocation.Services[web].Addrs[0] {
		t.Errorf("anchors %v, want the address of %s", a, web)
	}
	if !m.amend(d, web, kube.Change{Was: young}) {
		t.Fatal("the last one is not amended")
	}
	w.Services = nil
	same(t, w, &m, d)
	next := service(world.Key{Namespace: "shop", Name: "next"}, 3)
	if !m.amend(d, next.Key, kube.Change{Is: next}) {
		t.Fatal("the first one is not amended")
	}
	w.Services = []*world.Service{next}
	same(t, w, &m, d)
}
