// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// FuzzAmend adds and removes Services and checks after each step that a new Allocation confirms the amended one.
func FuzzAmend(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		seed := make([]byte, 60+r.IntN(200))
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, choices []byte) { amendAll(t, choices) })
}

// amendAll returns how often an Allocation could be amended.
func amendAll(t *testing.T, choices []byte) (amended int) {
	t.Helper()
	w := worldtest.Random(bytes.Clone(choices))
	source := worldtest.Source(choices)
	absent := map[world.Key]*world.Service{}
	for _, s := range slices.Clone(w.Services) {
		if source.N(2) == 0 {
			absent[s.Key] = s
			w.Services = remove(w.Services, s)
			show(s, ipam.Outcome{})
		}
	}
	a := settled(w)
	for range 10 {
		if comes := source.N(3) > 0; comes && len(absent) > 0 {
			keys := slices.SortedFunc(maps.Keys(absent), world.Key.Compare)
			s := absent[keys[source.N(len(keys))]]
			delete(absent, s.Key)
			w.Services = append(w.Services, s)
			if _, ok := a.Add(s); ok {
				amended++
				confirm(t, w, a)
			}
		} else if len(w.Services) > 0 {
			s := w.Services[source.N(len(w.Services))]
			w.Services = remove(w.Services, s)
			if a.Remove(s) {
				amended++
				confirm(t, w, a)
			}
			show(s, ipam.Outcome{})
			absent[s.Key] = s
		}
		a = settled(w)
	}
	return amended
}

func remove(list []*world.Service, s *world.Service) []*world.Service {
	return slices.DeleteFunc(slices.Clone(list), func(o *world.Service) bool { return o == s })
}

// settled lets the API server observe the allocations until nothing changes any more.
func settled(w *world.Snapshot) *ipam.Allocation {
	for range 2*len(w.Services) + 1 {
		write(w, ipam.Allocate(w, threeShards))
	}
	return ipam.Allocate(w, threeShards)
}

func confirm(t *testing.T, w *world.Snapshot, a *ipam.Allocation) {
	t.Helper()
	notShown := *w
	notShown.Granted = map[world.Key][]netip.Addr{}
	for k, o := range a.Services {
		notShown.Granted[k] = o.Addrs
	}
	// A new Service may change the reasons of pending Services. They are updated on the next pass.
	unworded := cmp.Transformer("unworded", func(o ipam.Outcome) []string {
		if o.Reason != "" {
			return []string{fmt.Sprint(o.Addrs), o.Pool, "a remark"}
		}
		return []string{fmt.Sprint(o.Addrs), o.Pool}
	})
	if d := cmp.Diff(ipam.Allocate(&notShown, threeShards).Services, a.Services, unworded); d != "" {
		t.Errorf("an Allocate does not confirm it (-anew +amended):\n%s", d)
	}
}

// Amending is only useful if it is possible most of the time.
func TestMostChangesAreAmended(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	amended := 0
	const worlds = 200
	for range worlds {
		choices := make([]byte, 300)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		amended += amendAll(t, choices)
	}
	if amended < worlds {
		t.Errorf("%d amendments in %d worlds", amended, worlds)
	}
}

// A hundred Services are added and removed in a pool of a thousand addresses.
func TestAmendedAllocationsCanBeAmended(t *testing.T) {
	w := worldtest.Large(100, 1)
	a := ipam.Allocate(w, threeShards)
	given := map[netip.Addr]world.Key{}
	for k, o := range a.Services {
		given[o.Addrs[0]] = k
	}
	for i, s := range w.Services {
		if !a.Remove(s) {
			t.Fatalf("%s: not dismissed", s.Key)
		}
		fresh := *s
		fresh.Key.Name = "new-" + s.Key.Name
		o, ok := a.Add(&fresh)
		if !ok || len(o.Addrs) != 1 {
			t.Fatalf("%s: %+v, %t", fresh.Key, o, ok)
		}
		if i == 0 && a.Pools == nil {
			t.Fatal("no pools")
		}
		if other, taken := given[o.Addrs[0]]; taken {
			t.Errorf("%s has %s, which was given to %s", fresh.Key, o.Addrs[0], other)
		}
		given[o.Addrs[0]] = fresh.Key
	}
}

// A pending Service may come to share what a new Service gets, as here, where it had that address before.
func TestSharingServiceIsNotAmendedWhileOthersWait(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	sharer := func(name string, port uint16) *world.Service {
		return &world.Service{
			Key: world.Key{Namespace: "shop", Name: name}, UID: name, Families: []world.Family{world.IPv4}, SharingKey: "k",
			Ports: []world.Port{{Protocol: world.TCP, Port: port}},
		}
	}
	waits, comes := sharer("waits", 80), sharer("comes", 443)
	comes.Created = time.Unix(1, 0)
	w := &world.Snapshot{
		Now: time.Unix(3, 0),
		Pools: []*world.Pool{{Name: "p", AutoAssign: true, Ranges: []netipx.IPRange{netipx.IPRangeFrom(addr, addr)},
			ReuseDelay: time.Hour, Leases: []world.Lease{{Addr: addr, Service: comes.Key, Released: time.Unix(2, 0)}}}},
		Services: []*world.Service{waits},
	}
	a := ipam.Allocate(w, threeShards)
	if got := a.Services[waits.Key].Addrs; len(got) > 0 {
		t.Fatalf("%s has %v", waits.Key, got)
	}
	_, amended := a.Add(comes)
	w.Services = append(w.Services, comes)
	got := settled(w).Services[waits.Key].Addrs
	if amended || !slices.Equal(got, []netip.Addr{addr}) {
		t.Errorf("amended %t; in the end %s has %v, want it to share %s", amended, waits.Key, got, addr)
	}
}

// A Service also releases the address of spec.externalIPs that it has but that its pool does not serve.
func TestHolderOfAnUnservedAddressIsNotAmended(t *testing.T) {
	first := netip.MustParseAddr("192.0.2.1")
	s := &world.Service{
		Key: world.Key{Namespace: "shop", Name: "web"}, UID: "web", Families: []world.Family{world.IPv4},
		ExternalIPs: []netip.Addr{first}, HeldExternalIPs: []netip.Addr{first},
	}
	w := &world.Snapshot{
		Pools: []*world.Pool{{Name: "p", AutoAssign: true,
			Ranges: []netipx.IPRange{netipx.IPRangeFrom(first, first.Next())}}},
		Services: []*world.Service{s},
	}
	a := ipam.Allocate(w, threeShards)
	if o := a.Services[s.Key]; len(o.External) > 0 || !slices.Equal(o.HeldExternal, []netip.Addr{first}) {
		t.Fatalf("%+v", o)
	}
	if a.Remove(s) {
		t.Error("removed, but its address is still taken")
	}
}

// A Service that lists an address whose pool serves no such addresses waits for no other Service.
func TestAmendedBesideAnUnservedAddress(t *testing.T) {
	first := netip.MustParseAddr("192.0.2.1")
	service := func(name string, external ...netip.Addr) *world.Service {
		return &world.Service{Key: world.Key{Namespace: "shop", Name: name}, UID: name,
			Families: []world.Family{world.IPv4}, ExternalIPs: external}
	}
	lists, other := service("lists", first.Next()), service("other")
	w := &world.Snapshot{
		Pools: []*world.Pool{{Name: "p", AutoAssign: true,
			Ranges: []netipx.IPRange{netipx.IPRangeFrom(first, first.Next().Next())}}},
		Services: []*world.Service{lists, other},
	}
	a := settled(w)
	if o := a.Services[lists.Key]; o.Reason != ipam.ReasonNotAdmitted || len(o.Addrs) != 1 {
		t.Fatalf("%+v", o)
	}
	if !a.Remove(other) {
		t.Error("not amended")
	}
}
