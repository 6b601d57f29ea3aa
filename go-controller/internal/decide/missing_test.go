// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// New endpoints of a Service are amended although the decision lacks an edit of another one. Those of the edited
// Service wait for the full decision: they may not take effect with ports that it has not examined.
func TestEndpointsAreAmendedWithoutMissingEdit(t *testing.T) {
	edited, other := worldtest.Service(web, 1), worldtest.Service(world.Key{Namespace: "team", Name: "other"}, 2)
	var m State
	d := m.Decide(worldtest.Small(3, edited, other))
	withEndpoint := func(s *world.Service) *world.Service {
		is := *s
		is.Slices = []*world.Slice{{Family: world.IPv4, Ports: s.Ports, Endpoints: []world.Endpoint{
			{Addr: netip.MustParseAddr("10.244.0.9"), Node: "n0", Ready: true, Serving: true}}}}
		return &is
	}
	edit, added := *edited, worldtest.Service(world.Key{Namespace: "team", Name: "new"}, 3)
	edit.Ports = []world.Port{{Protocol: world.TCP, Port: 8080}}
	is := withEndpoint(other)
	a := m.AmendAll(d, map[world.Key]world.Change{
		web: {Was: edited, Is: &edit, SpecChanged: true}, other.Key: {Was: other, Is: is}, added.Key: {Is: added}}, false)
	if !a.Incomplete || len(a.Plans) != 1 || a.Plans[other.Key] == nil || a.Plans[other.Key] != d.Plans[other.Key] {
		t.Errorf("incomplete %t, plans %v, want the plan of %s only", a.Incomplete, a.Plans, other.Key)
	}
	a = m.AmendAll(d, map[world.Key]world.Change{
		web: {Was: &edit, Is: withEndpoint(&edit)}, other.Key: {Was: is, Is: other}}, true)
	if !a.Incomplete || len(a.Plans) != 1 || a.Plans[other.Key] == nil {
		t.Errorf("incomplete %t, plans %v, want the plan of %s only", a.Incomplete, a.Plans, other.Key)
	}
}

// Services are added, deleted, edited and change endpoints at random. Topology and plans equal those of a new decision
// about the changes that were applied, however many are missing.
func TestDecisionEqualsAmendmentWithMissingChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	what := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}), cmpopts.EquateEmpty()}
	var m State
	w := worldtest.Small(4)
	w.Domains[0].Shards = 2
	w.Cluster.Limits.NamespaceBackends = 8
	newest, known := map[world.Key]*world.Service{}, map[world.Key]*world.Service{}
	d := m.Decide(w)
	missing, refused, amended := false, 0, 0
	for now := range worldtest.Rounds(3000) {
		key := world.Key{Namespace: "shop", Name: fmt.Sprint(r.IntN(6))}
		c := randomChange(r, newest[key], key, now)
		if c.Is != nil && c.Was != nil && !c.SpecChanged && r.IntN(3) == 0 {
			c.Is.Assigned = d.Allocation.Services[key].Addrs
		}
		newest[key] = c.Is
		a := m.AmendAll(d, map[world.Key]world.Change{key: c}, missing)
		if p, planned := m.Planned(key); !a.Incomplete || c.Is != nil && planned && p == c.Is {
			known[key] = c.Is
			if missing {
				amended++
			}
		}
		missing = a.Incomplete
		w.Services = present(known)
		twin := State{overlay: m.overlay.clone()}
		want := twin.Decide(w)
		ignoreAdvanced(t, w.Cluster.Limits.NamespaceBackends, want.Plans, d.Plans)
		if diff := cmp.Diff(want.Topology, d.Topology, what) + cmp.Diff(want.Plans, d.Plans, what); diff != "" {
			t.Fatalf("change %d (-anew +amended):\n%s", now, diff)
		}
		if refused++; !missing {
			refused = 0
		} else if refused > 8 {
			missing, refused, known = false, 0, maps.Clone(newest)
			w.Services = present(known)
			for range w.Services { // A decision that moves a Service frees an address for the next one.
				d = m.Decide(w)
			}
		}
	}
	if amended < worldtest.Rounds(300) {
		t.Errorf("%d changes amended while others were missing", amended)
	}
}

// ignoreAdvanced removes from the wanted plans those of Services that differ because a Service got its endpoints in
// advance: a new decision gives the limit of the namespace to others. No advance exceeds it.
func ignoreAdvanced(t *testing.T, limit int, want, got map[world.Key]*plan.Service) {
	t.Helper()
	backends := 0
	for key, p := range got {
		for _, l := range p.Listeners {
			backends += max(1, len(l.Backends))
		}
		if other := want[key]; other != nil && other.Excess.Limit != p.Excess.Limit {
			want[key] = p
		}
	}
	if backends > limit {
		t.Errorf("%d backends of a namespace", backends)
	}
}

// randomChange adds, deletes or edits a Service, or changes its endpoints.
func randomChange(r *rand.Rand, was *world.Service, key world.Key, now int) world.Change {
	if was == nil {
		is := worldtest.Service(key, now)
		is.UID = fmt.Sprint(now)
		return world.Change{Is: is}
	}
	is := *was
	switch r.IntN(6) {
	case 0:
		return world.Change{Was: was}
	case 1:
		is.Ports = []world.Port{{Name: "http", Protocol: world.TCP, Port: uint16(80 + r.IntN(2))}} //nolint:gosec // 80 or 81
		is.SharingKey = []string{"", "key"}[r.IntN(2)]
		is.Requested = nil
		if r.IntN(2) == 0 {
			is.Requested = []netip.Addr{netip.AddrFrom4([4]byte{10, 50, 0, byte(100 + r.IntN(4))})}
		}
		return world.Change{Was: was, Is: &is, SpecChanged: true}
	}
	slice := *was.Slices[0]
	slice.Endpoints = nil
	for i := range r.IntN(4) {
		slice.Endpoints = append(slice.Endpoints, world.Endpoint{Ready: true, Serving: true,
			Addr: netip.AddrFrom4([4]byte{10, 244, byte(i), byte(now)})})
	}
	is.Slices = []*world.Slice{&slice}
	return world.Change{Was: was, Is: &is}
}

// present returns the Services that exist, oldest first.
func present(services map[world.Key]*world.Service) []*world.Service {
	return slices.SortedFunc(func(yield func(*world.Service) bool) {
		for _, s := range services {
			if s != nil && !yield(s) {
				return
			}
		}
	}, func(a, b *world.Service) int { return a.Created.Compare(b.Created) })
}
