// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var web = world.Key{Namespace: "shop", Name: "web"}

// An address must not be granted again while the API server does not show the first write yet.
func TestGrantsNotSeenYetAreHeld(t *testing.T) {
	var m State
	young := worldtest.Service(web, 2)
	first := m.Decide(worldtest.Small(1, young)).Allocation.Services[web].Addrs
	if len(first) != 1 {
		t.Fatalf("addresses: %v", first)
	}
	// An older Service appears before the status of the younger one.
	old := worldtest.Service(world.Key{Namespace: "shop", Name: "old"}, 1)
	d := m.Decide(worldtest.Small(1, young, old))
	if got := d.Allocation.Services[web].Addrs; len(got) != 1 || got[0] != first[0] {
		t.Errorf("web has %v, want the %v that is being written", got, first)
	}
	if got := d.Allocation.Services[old.Key].Addrs; len(got) != 0 {
		t.Errorf("old has %v, want none", got)
	}
	// A new Service with the same name is a different Service.
	namesake := worldtest.Service(web, 3)
	namesake.UID = "another"
	if got := m.Decide(worldtest.Small(1, namesake, old)).Allocation.Services[old.Key].Addrs; len(got) != 1 {
		t.Errorf("old has %v after web was recreated, want the address", got)
	}
}

// With interconnect, the status waits for a zone from when the address was granted, by the clock of the controller. The
// Service may have been created long before its pool, and the clock of the API server may differ.
func TestTheWaitForAZoneBeginsWithTheGrant(t *testing.T) {
	start := time.Unix(100_000, 0)
	for name, created := range map[string]time.Time{"long before": time.Unix(1, 0), "ahead": start.Add(time.Hour)} {
		var m State
		s := worldtest.Service(web, 1)
		s.Created = created
		at := func(after time.Duration, pools int, s *world.Service) *Decision {
			w := worldtest.Small(1, s)
			w.Pools = w.Pools[:pools]
			w.Now, w.Cluster.NoDatabase = start.Add(after), true
			for _, n := range w.Nodes {
				n.Zone, n.Agent = n.Name, &world.ZoneAgent{}
			}
			return m.Decide(w)
		}
		expect := func(when string, d *Decision, waits bool, due time.Time) {
			t.Helper()
			if d.MayAwaitZone(web) != waits || !d.Due.Equal(due) {
				t.Errorf("%s, %s: waits %t, due %v; want %t, %v", name, when, d.MayAwaitZone(web), d.Due, waits, due)
			}
		}
		at(-time.Minute, 0, s) // its pool does not exist yet
		end := start.Add(world.ProgramWait)
		expect("granted", at(0, 1, s), true, end)
		expect("still not programmed", at(world.ProgramWait-1, 1, s), true, end)
		expect("late", at(world.ProgramWait, 1, s), false, time.Time{})
		namesake := *s
		namesake.UID = "another"
		again := at(time.Hour, 1, &namesake)
		expect("replaced", again, true, start.Add(time.Hour+world.ProgramWait))
		shown := namesake
		shown.Assigned = again.Allocation.Services[web].Addrs
		expect("in the status", at(time.Hour, 1, &shown), false, time.Time{})
	}
}

func TestUnchangedPlansAreTheSamePointers(t *testing.T) {
	var m State
	s := worldtest.Service(web, 1)
	first := m.Decide(worldtest.Small(5, s)).Plans[web]
	if again := m.Decide(worldtest.Small(5, s)).Plans[web]; again != first {
		t.Error("the same Service has another plan")
	}
	twin := *s
	twin.Limits = []string{"reported to the user"}
	if again := m.Decide(worldtest.Small(5, &twin)).Plans[web]; again != first {
		t.Error("a Service that needs the same has another plan")
	}
	moved := worldtest.Service(web, 9)
	if again := m.Decide(worldtest.Small(5, moved)).Plans[web]; again == first {
		t.Error("a Service with another backend has the same plan")
	}
}

// A node that becomes reachable is a backend of Services that did not change.
func TestPlansFollowTheNodes(t *testing.T) {
	var m State
	pods := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	pod, host := worldtest.Service(web, 1), worldtest.Service(world.Key{Namespace: "shop", Name: "host"}, 2)
	host.Slices[0].Endpoints[0].Addr = netip.MustParseAddr("172.18.0.11")
	w := worldtest.Small(5, pod, host)
	w.Cluster.ClusterSubnets = pods
	before := m.Decide(w)
	if p := before.Plans[host.Key]; len(p.Unreachable) != 1 || len(p.Listeners[0].Backends) != 0 {
		t.Errorf("out of reach: %+v", p)
	}
	near := *w
	near.Nodes = slices.Clone(w.Nodes)
	n1 := *w.Nodes[0]
	n1.Hosts = []world.Host{{Addr: netip.MustParseAddr("172.18.0.11"), Masquerade: netip.MustParseAddr("169.254.169.3")}}
	near.Nodes[0] = &n1
	d := m.Decide(&near)
	if p := d.Plans[host.Key]; len(p.Unreachable) != 0 || len(p.Listeners[0].Backends) != 1 ||
		p.Listeners[0].Backends[0].Node != "n1" || !p.Listeners[0].Backends[0].HostNetwork {
		t.Errorf("within reach: %+v", p)
	}
	if len(d.Topology.Nodes[0].Hosts) != 1 {
		t.Errorf("the topology has %+v", d.Topology.Nodes)
	}
	if d.Plans[web] != before.Plans[web] {
		t.Error("a Service that needs the same has another plan")
	}
	more := *host
	more.Slices = append(slices.Clone(host.Slices), host.Slices[0])
	if !m.Amend(d, host.Key, world.Change{Was: host, Is: &more}) || len(d.Plans[host.Key].Listeners[0].Backends) != 1 {
		t.Errorf("amended: %+v", d.Plans[host.Key])
	}
}

// Two controllers run at the same time and grant a Service different addresses. The first write is kept. Otherwise the
// controllers would overwrite each other indefinitely.
func TestEarlierForeignWriteIsKept(t *testing.T) {
	var m State
	s := worldtest.Service(web, 1)
	ours := m.Decide(worldtest.Small(3, s)).Allocation.Services[web].Addrs
	written := *s
	written.Assigned = []netip.Addr{ours[0].Next()}
	for range 2 {
		if got := m.Decide(worldtest.Small(3, &written)).Allocation.Services[web].Addrs; got[0] != written.Assigned[0] {
			t.Errorf("web has %v, want the %v that another controller wrote", got, written.Assigned)
		}
	}
	// The latest request counts, although the status shows the address granted before it.
	asked := *s
	asked.Requested = []netip.Addr{ours[0].Next().Next()}
	m = State{}
	m.Decide(worldtest.Small(3, s))
	m.Decide(worldtest.Small(3, &asked))
	echo := asked
	echo.Assigned = ours
	if got := m.Decide(worldtest.Small(3, &echo)).Allocation.Services[web].Addrs; got[0] != asked.Requested[0] {
		t.Errorf("web has %v, want %v, whose write over our own %v is pending", got, asked.Requested, ours)
	}
	// Another controller may write an address that was briefly granted here and never written.
	old := worldtest.Service(world.Key{Namespace: "shop", Name: "old"}, 0)
	m = State{}
	m.Decide(worldtest.Small(3, s))
	taken := *old
	taken.Assigned = ours
	if got := m.Decide(worldtest.Small(3, s, &taken)).Allocation.Services[web].Addrs; got[0] == ours[0] {
		t.Fatalf("web has %v, as an older Service does", got)
	}
	moved := *old
	moved.Assigned = []netip.Addr{ours[0].Next().Next()}
	written.Assigned = ours
	if got := m.Decide(worldtest.Small(3, &written, &moved)).Allocation.Services[web].Addrs; got[0] != ours[0] {
		t.Errorf("web has %v, want the %v that another controller wrote", got, ours)
	}
}

// Two controllers run at the same time. An address that a status shows is not taken away for an older Service whose
// status does not show it.
func TestWhatAStatusShowsComesBeforeGrants(t *testing.T) {
	var m State
	old, young := worldtest.Service(world.Key{Namespace: "shop", Name: "old"}, 0), worldtest.Service(web, 1)
	ours := m.Decide(worldtest.Small(3, old)).Allocation.Services[old.Key].Addrs
	young.Assigned, young.Given = ours, ours
	got := m.Decide(worldtest.Small(3, old, young)).Allocation.Services
	if !slices.Equal(got[web].Addrs, ours) || len(got[old.Key].Addrs) != 1 || slices.Equal(got[old.Key].Addrs, ours) {
		t.Errorf("the young one, whose status shows %v, has %v, the old one %v", ours, got[web].Addrs, got[old.Key].Addrs)
	}
}

// Another client clears a status. The address stays, although the writer may still write it, also for a new controller.
func TestClearedStatusKeepsItsAddress(t *testing.T) {
	for name, decided := range map[string]bool{"the same controller": true, "another controller": false} {
		var m State
		s := worldtest.Service(web, 1)
		ours := m.Decide(worldtest.Small(3, s)).Allocation.Services[web].Addrs
		shown := *s
		shown.Assigned, shown.Given = ours, ours
		m.Decide(worldtest.Small(3, &shown))
		if !decided {
			m = State{}
		}
		cleared := *s
		cleared.Given = ours
		w := worldtest.Small(3, &cleared)
		w.Unsettled = map[world.Key][]netip.Addr{web: ours}
		if got := m.Decide(w).Allocation.Services[web].Addrs; !slices.Equal(got, ours) {
			t.Errorf("%s: web has %v, want %v", name, got, ours)
		}
	}
}

// A Service whose status another client cleared gets another address. Once its status no longer names the former one,
// others may have that: the decision is not amended.
func TestStatusThatFreesAClearedAddressIsNotAmended(t *testing.T) {
	ours, other := netip.MustParseAddr("10.50.0.100"), netip.MustParseAddr("10.50.0.102")
	for name, addrs := range map[string][]netip.Addr{"the other address": {other}, "none": nil} {
		var m State
		was := worldtest.Service(web, 1)
		was.Given, was.Requested = []netip.Addr{ours}, []netip.Addr{other}
		d := m.Decide(worldtest.Small(3, was))
		if got := d.Allocation.Services[web].Addrs; !slices.Equal(got, was.Requested) {
			t.Fatalf("web has %v, want %v", got, was.Requested)
		}
		is := *was
		is.Assigned, is.Given = addrs, addrs
		if m.Amend(d, web, world.Change{Was: was, Is: &is}) {
			t.Errorf("a status with %s instead of %s is amended", name, ours)
		}
	}
}

// The whole status is removed, with our conditions, while the writer has the address to write and the latest write has
// no answer. If the status shows it again, that was the writer: the next decision stays with what it granted.
func TestLateWriteOverClearedStatusIsNotAdopted(t *testing.T) {
	var m State
	s := worldtest.Service(web, 1)
	ours := m.Decide(worldtest.Small(3, s)).Allocation.Services[web].Addrs
	shown := *s
	shown.Assigned, shown.Given = ours, ours
	m.Decide(worldtest.Small(3, &shown))
	w := worldtest.Small(3, s)
	w.Unsettled = map[world.Key][]netip.Addr{web: slices.Concat(ours, ours)}
	granted := m.Decide(w).Allocation.Services[web].Addrs
	for range 2 {
		if got := m.Decide(worldtest.Small(3, &shown)).Allocation.Services[web].Addrs; !slices.Equal(got, granted) {
			t.Errorf("web has %v, want the %v granted before", got, granted)
		}
	}
}

// Another client has cleared the status of a Service whose address is announced, and the controller restarts. The
// address is not withheld: the database shows that it is announced.
func TestClearedAddressIsNotProbed(t *testing.T) {
	ours := netip.MustParseAddr("10.50.0.100")
	s, first := newProbed(t)
	s.w.Services[0].Given = []netip.Addr{ours}
	if keys := s.w.ServicesToVerify(); !slices.Equal(keys, []world.Key{web}) {
		t.Errorf("the database is asked about %v", keys)
	}
	s.w.Announced = nil
	s.expect("no database", 0, false, nil)
	s.w.Announced = map[netip.Addr]bool{ours: true}
	s.expect("the database is read", time.Minute, true, nil)
	s.m, s.w.Announced = State{}, map[netip.Addr]bool{}
	s.expect("another process, and it is not announced", 0, false, about(first, ours.String()))
}
