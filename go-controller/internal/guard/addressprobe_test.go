// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// simulate simulates a segment. host returns the host that has the address at a given time. Probes for the addresses in
// unsent can't be sent.
func simulate(q addressProbes, from, until time.Duration, host func(time.Duration) string, unsent ...netip.Addr) (
	asked int, conflicts map[netip.Addr]convert.ConflictReport) {
	start := time.Unix(1000, 0)
	for at := from; at < until; at += 50 * time.Millisecond {
		ask, _ := q.due(start.Add(at))
		for _, a := range ask {
			asked++
			sent := !slices.Contains(unsent, a)
			q[a].recordProbe(start.Add(at), sent, false)
			if mac := host(at); mac != "" && sent {
				q.receive(start.Add(at), map[string]bool{"provider": true}, neighbour.Answer{Addr: a, MAC: mac, VLAN: 7})
			}
		}
	}
	return asked, q.conflicts()
}

// An address is free after three unanswered probes. An address that another host has is probed every second.
func TestAddressProbesEndWithoutReply(t *testing.T) {
	a, start := netip.MustParseAddr("10.50.0.7"), time.Unix(1000, 0)
	requests := []world.ProbeRequest{{Network: "provider", VLAN: 7, Addresses: []netip.Addr{a}}}
	none := func(time.Duration) string { return "" }
	q := addressProbes{}
	q.setRequests(start, requests, nil)
	if asked, got := simulate(q, 0, time.Minute, none); asked != probeNum || len(got) != 0 {
		t.Errorf("no host there: %d probes, %v", asked, got)
	}
	if _, again := q.due(start.Add(time.Hour)); !again.IsZero() {
		t.Errorf("a finished probe is repeated at %s", again)
	}
	q.setRequests(start, nil, nil)

	q.setRequests(start, requests, nil)
	first := map[netip.Addr]convert.ConflictReport{a: {MAC: "02:00:00:00:00:01", Since: start.UTC()}}
	asked, got := simulate(q, 0, 10*time.Second, func(at time.Duration) string {
		if at > 5*time.Second {
			return "02:00:00:00:00:02"
		}
		return "02:00:00:00:00:01"
	})
	if !maps.Equal(got, first) || asked != 10 {
		t.Errorf("another host there: %d probes, %v, want %v", asked, got, first)
	}
	q.setRequests(start.Add(10*time.Second), requests, nil)
	if _, got := simulate(q, 10*time.Second, 12*time.Second, none); !maps.Equal(got, first) {
		t.Errorf("just gone: %v", got)
	}
	if _, got := simulate(q, 12*time.Second, 20*time.Second, none); len(got) != 0 {
		t.Errorf("gone: %v", got)
	}
}

// Replies from other segments are ignored, and conflicts found by a previous guard are kept for a while.
func TestAnswersOfOtherSegmentsAreIgnored(t *testing.T) {
	a, start := netip.MustParseAddr("fd00:50::7"), time.Unix(1000, 0)
	requests := []world.ProbeRequest{{Network: "provider", Addresses: []netip.Addr{a}}}
	q := addressProbes{}
	q.setRequests(start, requests, nil)
	here := map[string]bool{"provider": true}
	q.receive(start, here, neighbour.Answer{Addr: a, MAC: "02:00:00:00:00:01", VLAN: 7})
	q.receive(start, map[string]bool{"physnet": true}, neighbour.Answer{Addr: a, MAC: "02:00:00:00:00:01"})
	q.receive(start, here, neighbour.Answer{Addr: a.Next(), MAC: "02:00:00:00:00:01"})
	if got := q.conflicts(); len(got) != 0 {
		t.Errorf("conflicts %v", got)
	}
	before := map[netip.Addr]convert.ConflictReport{a: {MAC: "02:00:00:00:00:01", Since: start}}
	q = addressProbes{}
	q.setRequests(start, requests, before)
	if got := q.conflicts(); !maps.Equal(got, before) {
		t.Errorf("conflicts %v, want %v", got, before)
	}
	if _, got := simulate(q, 0, 10*time.Second, func(time.Duration) string { return "" }); len(got) != 0 {
		t.Errorf("gone: %v", got)
	}
}

// While answers may be lost, an address is not free, and probes are not more frequent than of one that a host has.
func TestProbesWhileReadingIsPaused(t *testing.T) {
	a, start := netip.MustParseAddr("10.50.0.7"), time.Unix(1000, 0)
	q := addressProbes{}
	q.setRequests(start, []world.ProbeRequest{{ID: "1-1", Network: "provider", Addresses: []netip.Addr{a}}}, nil)
	asked := 0
	for at := time.Duration(0); at < 10*time.Second; at += 50 * time.Millisecond {
		ask, _ := q.due(start.Add(at))
		for _, a := range ask {
			asked++
			q[a].recordProbe(start.Add(at), true, true)
		}
	}
	if done := q.probed(); asked != 10 || len(done) > 0 {
		t.Errorf("%d probes in 10 s, and %v are done", asked, done)
	}
}

// A host that makes an answer be lost after each probe, and waits until reading goes on, frees no address.
func TestProbesBeforeAPauseDoNotCount(t *testing.T) {
	a, start := netip.MustParseAddr("10.50.0.7"), time.Unix(1000, 0)
	q := addressProbes{}
	q.setRequests(start, []world.ProbeRequest{{ID: "1-1", Network: "provider", Addresses: []netip.Addr{a}}}, nil)
	paused := false
	for at := time.Duration(0); at < 20*time.Second; at += 50 * time.Millisecond {
		ask, _ := q.due(start.Add(at))
		for _, a := range ask {
			q[a].recordProbe(start.Add(at), true, paused)
			paused = !paused
		}
	}
	if done := q.probed(); len(done) > 0 {
		t.Errorf("every other probe was before a pause, and %v are done", done)
	}
}

// An answer counts for the current request. Answers of our own router are ignored. A host that answered a request of
// another controller still has the address.
func TestAnswersToSupersededProbesAreIgnored(t *testing.T) {
	a, start, here := netip.MustParseAddr("10.50.0.7"), time.Unix(1000, 0), map[string]bool{"provider": true}
	ask := func(id string) []world.ProbeRequest {
		return []world.ProbeRequest{{ID: id, Own: "02:00:00:00:00:0a", Network: "provider", Addresses: []netip.Addr{a}}}
	}
	q := addressProbes{}
	q.setRequests(start, ask("1-1"), nil)
	q.receive(start, here, neighbour.Answer{Addr: a, MAC: "02:00:00:00:00:0A"})
	if got := q.conflicts(); len(got) != 0 {
		t.Errorf("our own router is a conflict: %v", got)
	}
	q.receive(start, here, neighbour.Answer{Addr: a, MAC: "02:00:00:00:00:01"})
	for _, id := range []string{"1-1", "2-1"} {
		q.setRequests(start, ask(id), nil)
		want := map[netip.Addr]convert.ConflictReport{a: {MAC: "02:00:00:00:00:01", Since: start.UTC(), Probe: id}}
		if got := q.conflicts(); !maps.Equal(got, want) {
			t.Errorf("conflicts %v, want %v", got, want)
		}
	}
	if _, got := simulate(q, 0, 10*time.Second, func(time.Duration) string { return "" }); len(got) != 0 {
		t.Errorf("gone: %v", got)
	}
}

// A host that repeats its reply causes no work for the other addresses.
func TestRepeatedAnswersAreIrrelevant(t *testing.T) {
	a, start, here := netip.MustParseAddr("10.50.0.7"), time.Unix(1000, 0), map[string]bool{"provider": true}
	q := addressProbes{}
	q.setRequests(start, []world.ProbeRequest{{ID: "1-1", Network: "provider", Addresses: []netip.Addr{a}}}, nil)
	reply := neighbour.Answer{Addr: a, MAC: "02:00:00:00:00:01"}
	if !q.receive(start, here, reply) {
		t.Error("the first reply is irrelevant")
	}
	q[a].recordProbe(start, true, false)
	if q.receive(start, here, reply) || q[a].unanswered != 0 {
		t.Error("a repeated reply is relevant, or does not answer the probe")
	}
	q[a].unanswered, q[a].found = probeNum+1, convert.ConflictReport{}
	if !q.receive(start, here, reply) {
		t.Error("a reply after the last probe is irrelevant")
	}
}

// While no probe can be sent, silence means nothing: a host that was found still has the address. It does not count for
// longer than the report of a guard that is gone.
func TestConflictIsKeptWhileNoProbeIsSent(t *testing.T) {
	a, start := netip.MustParseAddr("10.50.0.7"), time.Unix(1000, 0)
	requests := []world.ProbeRequest{{ID: "1-1", Network: "provider", VLAN: 7, Addresses: []netip.Addr{a}}}
	none := func(time.Duration) string { return "" }
	found := map[netip.Addr]convert.ConflictReport{a: {MAC: "02:00:00:00:00:01", Since: start, Probe: "1-1"}}
	begin := func() addressProbes {
		q := addressProbes{}
		q.setRequests(start, requests, found)
		return q
	}
	q := begin()
	if _, got := simulate(q, 0, 10*time.Second, none, a); !maps.Equal(got, found) {
		t.Errorf("nothing was sent: conflicts %v, want %v", got, found)
	}
	if _, got := simulate(q, 10*time.Second, 12*time.Second, none); !maps.Equal(got, found) {
		t.Errorf("two probes were sent: conflicts %v, want %v", got, found)
	}
	if _, got := simulate(q, 12*time.Second, 50*time.Second, none, a); !maps.Equal(got, found) {
		t.Errorf("38 s without a probe: conflicts %v, want %v", got, found)
	}
	q.setRequests(start.Add(50*time.Second), []world.ProbeRequest{{ID: "2-1", Network: "provider", VLAN: 7,
		Addresses: []netip.Addr{a}}}, nil)
	if _, got := simulate(q, 50*time.Second, 53*time.Second, none, a); len(got) != 0 || len(q.probed()) != 0 {
		t.Errorf("42 s without a probe, also if the controller was replaced: conflicts %v, completed %v", got, q.probed())
	}
	q = begin()
	simulate(q, 0, 10*time.Second, none, a)
	if asked, got := simulate(q, 10*time.Second, 14*time.Second, none); len(got) != 0 || asked != probeNum ||
		!slices.Equal(q.probed(), []string{"1-1"}) {
		t.Errorf("silence: %d probes, conflicts %v, completed %v", asked, got, q.probed())
	}
}

// A request is completed once each of its addresses is free or in conflict. Silence means nothing if a probe was not
// sent; it is repeated.
func TestCompletedProbeRequests(t *testing.T) {
	start := time.Unix(1000, 0)
	free, taken, unsent := netip.MustParseAddr("10.50.0.7"), netip.MustParseAddr("10.50.0.8"),
		netip.MustParseAddr("10.50.0.9")
	request := func(id string, addrs ...netip.Addr) world.ProbeRequest {
		return world.ProbeRequest{ID: id, Network: "provider", VLAN: 7, Addresses: addrs}
	}
	q := addressProbes{}
	q.setRequests(start, []world.ProbeRequest{request("1-1", free, taken), request("1-2", unsent)}, nil)
	expect := func(when string, want ...string) {
		t.Helper()
		if got := q.probed(); !slices.Equal(got, want) {
			t.Errorf("%s: completed are %q, want %q", when, got, want)
		}
	}
	expect("at once")
	other := neighbour.Answer{Addr: taken, MAC: "02:00:00:00:00:01", VLAN: 7}
	q.receive(start, map[string]bool{"provider": true}, other)
	expect("one address is in conflict")
	simulate(q, 0, time.Second, func(time.Duration) string { return "" }, unsent)
	expect("silence", "1-1")
	q.setRequests(start.Add(time.Second), []world.ProbeRequest{request("1-3", free), request("1-2", unsent)}, nil)
	expect("a new request")
	simulate(q, time.Second, 2*time.Second, func(time.Duration) string { return "" }, unsent)
	expect("silence again", "1-3")
	simulate(q, 2*time.Second, 3*time.Second, func(time.Duration) string { return "" })
	expect("all probes are sent", "1-2", "1-3")
}
