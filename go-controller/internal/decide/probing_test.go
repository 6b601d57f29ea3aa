// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const conflictingMAC = "02:00:00:00:00:99"

// watched is a controller's state and a small snapshot in which some nodes have guards.
type watched struct {
	*testing.T
	m   State
	w   *world.Snapshot
	now time.Time
}

func newWatched(t *testing.T, guards int, services ...*world.Service) *watched {
	s := &watched{T: t, w: worldtest.Small(5, services...), now: time.Unix(1000, 0)}
	s.w.Announced = map[netip.Addr]bool{}
	for _, n := range s.w.Nodes[:guards] {
		n.Guarded = true
	}
	return s
}

// newProbed returns a Service whose address the guard of the first gateway is to probe, and that gateway. Nothing has
// been decided yet.
func newProbed(t *testing.T) (s *watched, first string) {
	s = newWatched(t, 3, worldtest.Service(web, 1))
	return s, firstGateway(new(State).Decide(worldtest.Small(5)))
}

// expect runs a pass some time later, and compares the plans for OVN and the probe requests for guards.
func (w *watched) expect(when string, later time.Duration, planned bool,
	probes map[string][]world.ProbeRequest) *Decision {
	w.Helper()
	w.now = w.now.Add(later)
	w.w.Now = w.now
	d := w.m.Decide(w.w)
	if got := d.Plans[web] != nil; got != planned {
		w.Errorf("%s: announced %v, want %v", when, got, planned)
	}
	got := w.m.probing.probes(w.now)
	for _, list := range got {
		for i := range list {
			if list[i].ID == "" {
				w.Errorf("%s: a probe request without an ID: %v", when, list[i])
			}
			list[i].ID, list[i].Own = "", ""
		}
	}
	if d := cmp.Diff(probes, got, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); d != "" {
		w.Errorf("%s: probes (-want +got):\n%s", when, d)
	}
	return d
}

// report makes the guard of a node report another host, in reply to a probe request.
func (w *watched) report(node, probe, mac string) {
	w.w.Reports = map[string]map[netip.Addr]world.Conflict{node: {
		netip.MustParseAddr("10.50.0.100"): {MAC: mac, Node: node, Since: time.Unix(1000, 0), Probe: probe},
	}}
}

// probe returns the ID of the current probe request for the guard of a node.
func (w *watched) probe(node string) string {
	w.Helper()
	list := w.m.probing.probes(w.now)[node]
	if len(list) != 1 {
		w.Fatalf("node %s has the probe requests %v", node, list)
	}
	return list[0].ID
}

func about(guard string, addrs ...string) map[string][]world.ProbeRequest {
	q := world.ProbeRequest{Network: "physnet"}
	for _, a := range addrs {
		q.Addresses = append(q.Addresses, netip.MustParseAddr(a))
	}
	return map[string][]world.ProbeRequest{guard: {q}}
}

func firstGateway(d *Decision) string { return d.Layout.Domains[0].Shards[0].Gateways[0].Node }

func TestNoProbesWithoutGuards(t *testing.T) {
	s := newWatched(t, 0, worldtest.Service(web, 1))
	s.expect("at once", 0, true, nil)
}

func TestNewAddressWaitsForProbe(t *testing.T) {
	s, first := newProbed(t)
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	if got, want := s.m.probing.end(), s.now.Add(probeTimeout); !got.Equal(want) {
		t.Errorf("the next pass is at %s, want %s", got, want)
	}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("the status shows it", time.Second, false, about(first, "10.50.0.100"))
	id := s.probe(first)
	s.w.Probed = map[string][]string{first: {"0-0"}, "other": {id}}
	s.expect("other requests, and another guard", time.Millisecond, false, about(first, "10.50.0.100"))
	s.w.Probed = map[string][]string{first: {"0-0", id}}
	s.expect("probed", time.Millisecond, true, nil)
	s.w.Probed = nil
	s.w.Services[0].Assigned = nil
	s.expect("another client cleared the status", time.Second, true, nil)
	s.m = State{}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("another controller takes over", time.Second, true, nil)
}

func TestAddressIsProbedAgainAfterAbsence(t *testing.T) {
	s, first := newProbed(t)
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("it was announced before we came", 0, true, nil)
	s.w.Cluster.ModeSetting.Mode = world.BGPOnly
	s.expect("layer 2 is disabled", time.Second, false, nil)
	s.w.Cluster.ModeSetting.Mode = world.Layer2Only
	s.expect("and on", time.Hour, false, about(first, "10.50.0.100"))
	s.expect("a guard that hangs", probeTimeout, true, nil)
	for i, n := range s.w.Nodes {
		n.Zone = fmt.Sprintf("z%d", i)
	}
	s.expect("each node is a zone", time.Second, false, nil)
	for _, n := range s.w.Nodes {
		n.Zone = ""
	}
	s.expect("and none is any more", time.Hour, false, about(first, "10.50.0.100"))
	s.w.Probed = map[string][]string{first: {s.probe(first)}}
	s.expect("probed", time.Second, true, nil)
}

func TestContestedAddressWaitsUntilNoAnswer(t *testing.T) {
	s, first := newProbed(t)
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	s.report(first, s.probe(first), conflictingMAC)
	s.w.Probed = map[string][]string{first: {s.probe(first)}}
	d := s.expect("answered", 10*time.Millisecond, false, about(first, "10.50.0.100"))
	is := d.Placements.Services[web][0]
	want := "used outside of the cluster by MAC 02:00:00:00:00:99 (seen by node " + first +
		" since 1970-01-01T00:16:40Z)"
	if is.Reason != place.ReasonAddressConflict || is.Message != want {
		t.Errorf("placement %+v, want %q", is, want)
	}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("and later", time.Minute, false, about(first, "10.50.0.100"))
	s.w.Services[0].Contested = true
	last := s.probe(first)
	s.m = State{probing: probing{epoch: 7}}
	s.expect("another controller takes over", time.Minute, false, about(first, "10.50.0.100"))
	if now := s.probe(first); now == last {
		t.Errorf("it uses the probe ID %s again", now)
	}
	s.report(first, s.probe(first), conflictingMAC)
	s.expect("and is answered", 10*time.Millisecond, false, about(first, "10.50.0.100"))
	s.expect("and later", time.Minute, false, about(first, "10.50.0.100"))
	s.w.Reports = nil
	s.expect("the other host is gone", time.Minute, true, nil)
}

// An announced address stays announced, regardless of what any node reports.
func TestConflictReportKeepsAnnouncedAddress(t *testing.T) {
	s, first := newProbed(t)
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("announced before we came", 0, true, nil)
	for _, node := range []string{first, "n1", "n2", "n3", "gone"} {
		for _, probe := range []string{"", "0-1", "7-1"} {
			s.report(node, probe, conflictingMAC)
			d := s.expect("node "+node+" reports "+probe, time.Second, true, nil)
			if len(d.World.Conflicts) != 0 || len(s.m.probing.ignored) == 0 {
				t.Errorf("node %s, probe %q: accepted %v", node, probe, d.World.Conflicts)
			}
		}
	}
	s.expect("the same again", time.Second, true, nil)
	if n := s.m.probing.newlyIgnored; len(n) != 0 {
		t.Errorf("counted twice: %v", n)
	}
}

// A report by a node that was not asked, or for another probe request, does not withhold an address.
func TestOnlyProbedNodeAnswersItsProbe(t *testing.T) {
	s := newWatched(t, 3, worldtest.Service(web, 1))
	d := s.m.Decide(worldtest.Small(5))
	first, other := firstGateway(d), d.Layout.Domains[0].Shards[0].Gateways[1].Node
	s.m = State{}
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	for name, forge := range map[string]func(){
		"another node":  func() { s.report(other, s.probe(first), conflictingMAC) },
		"another probe": func() { s.report(first, "0-0", conflictingMAC) },
		"no probe":      func() { s.report(first, "", conflictingMAC) },
	} {
		forge()
		if d := s.expect(name, time.Millisecond, false, about(first, "10.50.0.100")); len(d.World.Conflicts) != 0 {
			t.Errorf("%s: accepted %v", name, d.World.Conflicts)
		}
	}
	s.w.Probed = map[string][]string{first: {s.probe(first)}}
	s.expect("no host, regardless of the report", time.Millisecond, true, nil)
}

// A valid reply that arrives too late causes a warning as long as it is reported, and withdraws nothing.
func TestLateAnswerEmitsWarning(t *testing.T) {
	s, first := newProbed(t)
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	probe := s.probe(first)
	s.expect("a guard that hangs", probeTimeout, true, nil)
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	warns := func(when string, want bool) {
		t.Helper()
		o := s.m.Decide(s.w).Allocation.Services[web]
		if got := string(o.Reason) == v1alpha1.ReasonAddressConflict; got != want {
			t.Errorf("%s: %s %s", when, o.Reason, o.Message)
		}
	}
	s.report(first, probe, conflictingMAC)
	s.expect("late", time.Millisecond, true, about(first, "10.50.0.100"))
	warns("late", true)
	s.w.Reports = nil
	s.expect("the guard restarts", time.Millisecond, true, about(first, "10.50.0.100"))
	warns("the guard restarts", true)
	if got, want := s.m.probing.end(), s.now.Add(announcedConflictTime); !got.Equal(want) {
		t.Errorf("the next pass is at %s, want %s", got, want)
	}
	s.report(first, probe, conflictingMAC)
	s.expect("it is answered again", time.Millisecond, true, about(first, "10.50.0.100"))
	s.expect("and for long", time.Hour, true, about(first, "10.50.0.100"))
	warns("for long", true)
	s.w.Reports = nil
	s.expect("not answered", time.Second, true, about(first, "10.50.0.100"))
	s.expect("gone", announcedConflictTime, true, nil)
	warns("gone", false)
	if got := s.m.probing.end(); !got.IsZero() {
		t.Errorf("another pass at %s", got)
	}
	s.report(first, probe, conflictingMAC)
	s.expect("long after that", lateConflictWindow, true, nil)
	s.report(first, probe, conflictingMAC)
	s.expect("and longer", lateConflictWindow, true, nil)
	warns("long after that", false)
}

// The status shows that an address is withheld, but not which one. It shows nothing about an external address. The
// database shows both.
func TestAnnouncedAddressesAreNotProbed(t *testing.T) {
	withheld, external := netip.MustParseAddr("10.50.0.100"), netip.MustParseAddr("10.50.0.104")
	s, first := newProbed(t)
	s.w.Pools[0].ExternalIPs = true
	s.w.Services[0].Assigned, s.w.Services[0].Contested = []netip.Addr{withheld}, true
	s.w.Services[0].ExternalIPs = []netip.Addr{external}
	s.w.Announced = map[netip.Addr]bool{external: true}
	d := s.expect("the withheld address is probed", 0, true, about(first, withheld.String()))
	if vips := d.Plans[web].VIPs; len(vips) != 1 || vips[0].Addr != external {
		t.Errorf("announced: %v", vips)
	}
	s.w.Announced[withheld] = true
	if d = s.expect("it is announced, too", 0, true, nil); len(d.Plans[web].VIPs) != 2 {
		t.Errorf("announced: %v", d.Plans[web].VIPs)
	}
}

// A controller that starts while the database can't be read does not know whether a contested address, or an external
// one, is announced. It waits, and remembers that the address was contested when its status no longer shows it.
func TestAddressesWaitForTheDatabase(t *testing.T) {
	withheld, external := netip.MustParseAddr("10.50.0.100"), netip.MustParseAddr("10.50.0.104")
	s, first := newProbed(t)
	s.w.Pools[0].ExternalIPs = true
	s.w.Services[0].Assigned, s.w.Services[0].Contested = []netip.Addr{withheld}, true
	s.w.Services[0].ExternalIPs, s.w.Services[0].HeldExternalIPs = []netip.Addr{external}, []netip.Addr{external}
	s.w.Announced = nil
	for i, contested := range []bool{true, true, false} {
		s.w.Services[0].Contested = contested
		d := s.expect("no database", time.Minute, false, nil)
		for _, placement := range d.Placements.Services[web] {
			if placement.Reason != place.ReasonProbing {
				t.Errorf("%s: %s %s", placement.Addr, placement.Reason, placement.Message)
			}
		}
		if got := d.Allocation.Services[web]; i > 0 && got.Reason != v1alpha1.ReasonAddressConflict {
			t.Errorf("allocated: %s %s", got.Reason, got.Message)
		}
	}
	s.w.Announced = map[netip.Addr]bool{external: true}
	d := s.expect("the database is read", time.Minute, true, about(first, withheld.String()))
	if vips := d.Plans[web].VIPs; len(vips) != 1 || vips[0].Addr != external {
		t.Errorf("announced: %v", vips)
	}
	s.w.Probed = map[string][]string{first: {s.probe(first)}}
	s.expect("probed", time.Second, true, nil)
}

// While the database can't be read, another Service may get an address that was announced before.
func TestAddressAnnouncedForAnotherServiceIsProbed(t *testing.T) {
	s, first := newProbed(t)
	a := netip.MustParseAddr("10.50.0.100")
	s.w.Announced, s.w.LastAnnounced = nil, map[netip.Addr]bool{a: true}
	s.expect("no database", 0, false, about(first, a.String()))
}

// Our own gateway may still answer for the Service that previously had the address.
func TestOwnAnswerIsNoConflict(t *testing.T) {
	s, first := newProbed(t)
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	own := world.ShardID{Domain: "lan"}.SegmentMAC(s.w.Cluster.ID)
	if got := s.m.probing.probes(s.now)[first][0].Own; got != own {
		t.Errorf("the guard receives %q as our own, want %q", got, own)
	}
	s.report(first, s.probe(first), own)
	s.w.Probed = map[string][]string{first: {s.probe(first)}}
	s.expect("probed", time.Second, true, nil)
}

// A removed guard is replaced, and the waiting time starts over. Once the last guard is removed, no address waits.
func TestRemovedGuards(t *testing.T) {
	s := newWatched(t, 3, worldtest.Service(web, 1))
	gateways := s.m.Decide(worldtest.Small(5)).Layout.Domains[0].Shards[0].Gateways
	node := map[string]*world.Node{}
	for _, n := range s.w.Nodes {
		node[n.Name] = n
	}
	s.expect("new", 0, false, about(gateways[0].Node, "10.50.0.100"))
	node[gateways[0].Node].Guarded = false
	s.expect("one gone", probeTimeout/2, false, about(gateways[1].Node, "10.50.0.100"))
	s.expect("asked for less than the waiting time", probeTimeout/2, false, about(gateways[1].Node, "10.50.0.100"))
	node[gateways[1].Node].Faults = map[string]world.Fault{"physnet": {Kind: world.FaultUplink, Message: "no carrier"}}
	s.expect("one without a link", 0, false, about(gateways[2].Node, "10.50.0.100"))
	for _, n := range s.w.Nodes {
		n.Guarded = false
	}
	s.expect("all gone", 0, true, nil)
}

func TestProbesPerGuardAreLimited(t *testing.T) {
	const most = maxProbesPerGuard + 20
	s := newWatched(t, 3)
	for i := range most {
		s.w.Services = append(s.w.Services, worldtest.Service(world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, i+1))
	}
	s.w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	w := worldtest.Small(most, s.w.Services...)
	s.w.Pools = w.Pools
	asked := func() int {
		n := 0
		for _, list := range s.m.probing.probes(s.w.Now) {
			for _, q := range list {
				n += len(q.Addresses)
			}
		}
		return n
	}
	for i, want := range []int{maxProbesPerGuard, most - maxProbesPerGuard, 0} {
		s.w.Now = s.now.Add(time.Duration(i) * probeTimeout)
		d := s.m.Decide(s.w)
		if got := asked(); got != want {
			t.Errorf("pass %d: %d probe requests, want %d", i, got, want)
		}
		if got, want := len(d.Plans), min(i*maxProbesPerGuard, most); got != want {
			t.Errorf("pass %d: %d announced, want %d", i, got, want)
		}
	}
}

// A tenant that came first and has thousands of new addresses keeps no address of others waiting.
func TestEachNamespaceHasItsTurnToBeProbed(t *testing.T) {
	const many = 3 * maxProbesPerGuard
	wide := worldtest.Service(world.Key{Namespace: "tenant", Name: "wide"}, 1)
	for a := netip.MustParseAddr("10.50.1.0"); len(wide.ExternalIPs) < many; a = a.Next() {
		wide.ExternalIPs = append(wide.ExternalIPs, a)
	}
	w := worldtest.Small(many+1000, wide)
	w.Now, w.Nodes[0].Guarded, w.Pools[0].ExternalIPs = time.Unix(1000, 0), true, true
	w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	var m State
	m.Decide(w)
	other := worldtest.Service(web, 2)
	w.Services = append(w.Services, other)
	w.Now = w.Now.Add(probeTimeout)
	d := m.Decide(w)
	is := m.probing.requests[d.Allocation.Services[web].Addrs[0]]
	if is.id == "" {
		t.Errorf("the address of the other tenant waits after %d of %d addresses were probed",
			len(d.Plans[wide.Key].VIPs), many)
	}
}
