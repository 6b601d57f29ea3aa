// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go4.org/netipx"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A host on the segment that answers for every address keeps no guard from probing others: the annotations with
// requests and replies stay within what a Lease may have, and each address that it does not answer for is announced.
func TestAHostThatAnswersForAllAddressesSilencesNoGuard(t *testing.T) {
	const first = 100 // the last byte of the first address
	honest, contested := 50, worldtest.Rounds(2000)
	end := first + contested
	firstHonest := netip.AddrFrom4([4]byte{10, 50, byte(end >> 8), byte(end)})
	w := manyServices(contested + honest)
	services := w.Services
	m := NewState(1)
	var d *Decision
	for range 60 {
		w.Now = w.Now.Add(probeTimeout - time.Second)
		d = m.Decide(w)
		answerBelow(t, w, d.Probes, firstHonest) // those of the older Services
	}
	announced, withheld := 0, 0
	for _, s := range services {
		switch placement := d.Placements.Services[s.Key][0]; {
		case d.Plans[s.Key] != nil:
			announced++
		case placement.Reason == place.ReasonAddressConflict:
			withheld++
		}
	}
	if announced < honest || announced+withheld < len(services) {
		t.Errorf("%d announced, %d in conflict, of %d", announced, withheld, len(services))
	}
}

// manyServices returns a world whose nodes have guards, with Services that have no addresses yet.
func manyServices(n int) *world.Snapshot {
	var services []*world.Service
	for i := range n {
		services = append(services, worldtest.Service(world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, i))
	}
	w := worldtest.Small(5, services...)
	w.Pools[0].Ranges[0] = netipx.MustParseIPRange("10.50.0.100-10.50.15.254")
	w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	for _, n := range w.Nodes {
		n.Guarded = true
	}
	w.Now = time.Unix(1000, 0)
	return w
}

// A host that answers for every address just after a guard has found it free fills no Lease, and keeps none from
// being announced, or those of others from being probed.
func TestAHostThatAnswersLateForAllAddressesFillsNoLease(t *testing.T) {
	w := manyServices(max(worldtest.Rounds(2000), 3*maxLatePerGuard)) // more than the limit
	m := NewState(1)
	var d *Decision
	var before map[string][]world.ProbeRequest
	for range 60 {
		w.Now = w.Now.Add(time.Second)
		d = m.Decide(w)
		w.Reports, w.Probed = map[string]map[netip.Addr]world.Conflict{}, map[string][]string{}
		for node, requests := range d.Probes {
			expectAccepted(t, requests)
			found := answer(w, node, before[node], netip.MustParseAddr("10.50.255.255"))
			for _, q := range requests {
				w.Probed[node] = append(w.Probed[node], q.ID)
			}
			expectRoom(t, requests, found, w.Probed[node])
		}
		before = d.Probes
	}
	if n := len(d.Plans); n != len(w.Services) {
		t.Errorf("%d of %d Services are announced", n, len(w.Services))
	}
	late := map[string]int{}
	for _, c := range d.World.Conflicts {
		late[c.Node]++
	}
	for node, n := range late {
		if n != maxLatePerGuard {
			t.Errorf("%d conflicts of node %s, want %d", n, node, maxLatePerGuard)
		}
	}
	if len(late) == 0 {
		t.Error("no conflict is reported")
	}
}

// expectAccepted checks that a guard ignores none of the requests.
func expectAccepted(t *testing.T, requests []world.ProbeRequest) {
	t.Helper()
	text, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	accepted := convert.ProbeRequests(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{v1alpha1.AnnotationAddressProbes: string(text)}}})
	if len(accepted) != len(requests) {
		t.Fatalf("a guard accepts %d of %d requests", len(accepted), len(requests))
	}
}

// answerBelow makes guards report that another host answers for each probed address below an address. It checks that
// the annotations of a Lease have room for that.
func answerBelow(t *testing.T, w *world.Snapshot, probes map[string][]world.ProbeRequest, end netip.Addr) {
	t.Helper()
	w.Reports, w.Probed = map[string]map[netip.Addr]world.Conflict{}, map[string][]string{}
	for node, requests := range probes {
		for _, q := range requests {
			w.Probed[node] = append(w.Probed[node], q.ID)
		}
		expectRoom(t, requests, answer(w, node, requests, end), w.Probed[node])
	}
}

// answer makes a guard report that another host answers for the requested addresses below an address.
func answer(w *world.Snapshot, node string, requests []world.ProbeRequest, end netip.Addr,
) map[netip.Addr]convert.ConflictReport {
	found := map[netip.Addr]convert.ConflictReport{}
	w.Reports[node] = map[netip.Addr]world.Conflict{}
	for _, q := range requests {
		for _, a := range q.Addresses {
			if a.Less(end) {
				found[a] = convert.ConflictReport{MAC: conflictingMAC, Since: w.Now, Probe: q.ID}
				w.Reports[node][a] = world.Conflict{MAC: conflictingMAC, Node: node, Since: w.Now, Probe: q.ID}
			}
		}
	}
	return found
}

// expectRoom checks that the annotations leave half of those of a Lease for what else is reported.
func expectRoom(t *testing.T, requests []world.ProbeRequest, found map[netip.Addr]convert.ConflictReport,
	probed []string) {
	t.Helper()
	size := 0
	for annotation, value := range map[string]any{v1alpha1.AnnotationAddressProbes: requests,
		v1alpha1.AnnotationConflicts: found, v1alpha1.AnnotationProbed: probed} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		size += len(annotation) + len(text)
	}
	if size > 128<<10 {
		t.Fatalf("the annotations have %d bytes; half of 256 KiB must remain for what else is reported", size)
	}
}

// A host that takes an address that is announced is in the status while a gateway reports it, and a minute longer. The
// address stays announced. The first report counts, and only those of gateways.
func TestConflictOnAnAnnouncedAddress(t *testing.T) {
	s := newWatched(t, 3, worldtest.Service(web, 1))
	addr := netip.MustParseAddr("10.50.0.100")
	s.w.Services[0].Assigned = []netip.Addr{addr}
	s.expect("announced before we came", 0, true, nil)
	report := func(node, mac string) {
		s.w.AnnouncedReports = map[string]map[netip.Addr]world.Conflict{node: {
			addr:        {MAC: mac, Node: node, Since: s.now},
			addr.Next(): {MAC: mac, Node: node, Since: s.now}, // of no Service
		}}
	}
	expect := func(when string, later time.Duration, want world.Conflict) {
		t.Helper()
		d := s.expect(when, later, true, nil)
		got := d.World.Conflicts
		_, free := got[addr.Next()]
		if got[addr] != want || free {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		warns := string(d.Allocation.Services[web].Reason) == v1alpha1.ReasonAddressConflict
		if warns != (want != world.Conflict{}) {
			t.Errorf("%s: %s %s", when, d.Allocation.Services[web].Reason, d.Allocation.Services[web].Message)
		}
	}
	report("gone", conflictingMAC)
	expect("a node that is no gateway reports", time.Second, world.Conflict{})
	report("n1", world.ShardID{Domain: "lan"}.SegmentMAC(s.w.Cluster.ID))
	expect("our own router answers", time.Second, world.Conflict{})
	report("n2", conflictingMAC)
	first := s.w.AnnouncedReports["n2"][addr]
	expect("another host answers", time.Second, first)
	report("n1", "02:00:00:00:00:98")
	expect("another gateway reports yet another host", time.Hour, first)
	s.w.AnnouncedReports = nil
	expect("it is no longer reported", time.Hour, first)
	if got, want := s.m.probing.end(), s.now.Add(announcedConflictTime); !got.Equal(want) {
		t.Errorf("the next pass is at %s, want %s", got, want)
	}
	report("n1", "02:00:00:00:00:98")
	expect("it is again", announcedConflictTime/2, first)
	s.w.AnnouncedReports = nil
	expect("and is not", time.Second, first)
	expect("for a minute", announcedConflictTime, world.Conflict{})
	if got := s.m.probing.end(); !got.IsZero() {
		t.Errorf("another pass at %s", got)
	}
}

// An address that waits for its probe is not announced: a report that it is does not withhold it. It counts once the
// address is announced.
func TestReportOnAnAddressThatIsNotAnnounced(t *testing.T) {
	s, first := newProbed(t)
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.w.AnnouncedReports = map[string]map[netip.Addr]world.Conflict{first: {
		s.w.Services[0].Assigned[0]: {MAC: conflictingMAC, Node: first}}}
	if d := s.expect("reported", time.Second, false, about(first, "10.50.0.100")); len(d.World.Conflicts) > 0 {
		t.Errorf("accepted %v", d.World.Conflicts)
	}
	s.w.Probed = map[string][]string{first: {s.probe(first)}}
	if d := s.expect("probed", time.Millisecond, true, nil); d.ProbesDue.IsZero() || d.ProbesDue.After(s.now) {
		t.Errorf("announced: the next pass is at %s, but a report counts now", d.ProbesDue)
	}
	d := s.expect("announced", 0, true, nil)
	if len(d.World.Conflicts) != 1 || !d.ProbesDue.IsZero() {
		t.Errorf("announced: accepted %v, next pass at %s", d.World.Conflicts, d.ProbesDue)
	}
}

// A host that answers now and then after an address is announced, each time from another MAC address, costs one change
// of the Service's verdict.
func TestLateAnswersThatComeAndGo(t *testing.T) {
	s, first := newProbed(t)
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	probe := s.probe(first)
	s.expect("a guard that hangs", probeTimeout, true, nil)
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.report(first, probe, conflictingMAC)
	want := s.expect("first answer", time.Second, true, about(first, "10.50.0.100")).Allocation.Services[web]
	if want.Reason != v1alpha1.ReasonAddressConflict {
		t.Fatalf("first answer: %s %s", want.Reason, want.Message)
	}
	for i := range 20 {
		s.w.Reports = nil
		if i%2 == 0 {
			s.report(first, probe, fmt.Sprintf("02:00:00:00:01:%02d", i))
		}
		d := s.expect("now and then", announcedConflictTime-time.Second, true, about(first, "10.50.0.100"))
		if got := d.Allocation.Services[web]; got.Message != want.Message {
			t.Fatalf("%d: %s %s, want %s", i, got.Reason, got.Message, want.Message)
		}
	}
}
