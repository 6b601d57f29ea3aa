// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

func TestLongestGapCountsStartAndEnd(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name            string
		times           []time.Duration
		length, gap, at time.Duration
	}{
		{"never answered", nil, 100 * ms, 100 * ms, 0},
		{"late first answer", []time.Duration{60 * ms, 70 * ms}, 80 * ms, 60 * ms, 0},
		{"dead at the end", []time.Duration{10 * ms, 20 * ms}, 100 * ms, 80 * ms, 20 * ms},
		{"in the middle, answers out of order", []time.Duration{90 * ms, 10 * ms, 20 * ms}, 100 * ms, 70 * ms, 20 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			if gap, at := longestGap(c.times, c.length); gap != c.gap || at != c.at {
				t.Errorf("longestGap = %s at %s, want %s at %s", gap, at, c.gap, c.at)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		sorted   []time.Duration
		p50, p99 time.Duration
	}{{nil, 0, 0}, {hundred[:1], 1, 1}, {hundred[:2], 1, 2}, {hundred[:50], 25, 50}, {hundred, 50, 99}} {
		if p50, p99 := quantile(c.sorted, 50), quantile(c.sorted, 99); p50 != c.p50 || p99 != c.p99 {
			t.Errorf("%d values: %d and %d, want %d and %d", len(c.sorted), p50, p99, c.p50, c.p99)
		}
	}
}

// The flows of a run that is ending fail, which makes it complete. Who has the results hears nothing of that any more:
// the lab's command prints the line before them.
func TestNothingIsReportedAfterTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		streams, end, err := newStreams([]Spec{{Kind: UDPFlow, Target: netip.MustParseAddrPort("192.0.2.1:53"), Count: 1}},
			Options{Answered: func() { calls = append(calls, AnsweredLine) },
				Complete: func() { calls = append(calls, CompleteLine) }})
		if err != nil {
			t.Fatal(err)
		}
		streams[0].first()
		synctest.Wait()
		end()
		streams[0].flowFirst()
		synctest.Wait()
		if !slices.Equal(calls, []string{AnsweredLine}) {
			t.Errorf("calls %v", calls)
		}
	})
}

// runUntil runs specs until enough returns true for each stream, whose mu it holds. It returns the results.
func runUntil(t *testing.T, specs []Spec, answered func(), enough func(*stream) bool) []Result {
	t.Helper()
	streams, end, err := newStreams(specs, Options{Answered: answered, Confirm: answerTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for _, s := range streams {
		s.wait = await.Limit
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	go func() {
		defer cancel()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for _, s := range streams {
			for done := false; !done && ctx.Err() == nil; <-tick.C {
				s.mu.Lock()
				done = enough(s)
				s.mu.Unlock()
			}
		}
	}()
	results := run(ctx, streams)
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatalf("streams never saw enough: %+v", results)
	}
	return results
}

func TestEachKindAgainstResponder(t *testing.T) {
	ctx := t.Context()
	ports := make(chan [2]uint16, 1)
	go responder.Run(ctx, responder.Options{Name: "web-1", TCP: []uint16{0}, UDP: []uint16{0},
		Listening: func(tcp, udp []uint16) error {
			ports <- [2]uint16{tcp[0], udp[0]}
			return nil
		}})
	open := <-ports
	for _, host := range []string{"127.0.0.1", "::1"} {
		var specs []Spec
		for kind, port := range map[Kind]uint16{TCPNew: open[0], TCPLong: open[0], UDPNew: open[1], UDPFlow: open[1]} {
			specs = append(specs, Spec{Kind: kind, Target: netip.AddrPortFrom(netip.MustParseAddr(host), port)})
		}
		answered := make(chan struct{})
		results := runUntil(t, specs, func() { close(answered) }, func(s *stream) bool {
			return len(s.times) >= 20 || len(s.saw.Errors) > 0
		})
		for _, r := range results {
			if r.Sent == 0 || r.Lost != 0 || r.Broken() != 0 || len(r.Flows) != r.Spec.Count || r.Backends["web-1"] != r.Sent ||
				r.Clients[host] != r.Sent {
				t.Errorf("%+v", r)
			}
			if slices.ContainsFunc(r.Flows, func(f Flow) bool { return !f.Answering }) {
				t.Errorf("%s: a flow was not answered after the run: %+v", r.Spec, r.Flows)
			}
		}
		if !t.Failed() {
			<-answered
		}
	}
}

func TestProbeWithoutResponder(t *testing.T) {
	target := netip.MustParseAddrPort("127.0.0.1:1")
	results := runUntil(t, All(target), nil, func(s *stream) bool { return len(s.saw.Errors) > 0 })
	for _, r := range results {
		if slices.ContainsFunc(r.Flows, func(f Flow) bool { return f.Answering }) {
			t.Errorf("%s: a flow was answered: %+v", r.Spec, r.Flows)
		}
		if r.Gap <= 0 || len(r.Errors) == 0 || r.Lost != r.Sent {
			t.Errorf("%+v", r)
		}
		if r.Spec.Kind == TCPLong && r.Broken() != r.Spec.Count {
			t.Errorf("broken %d, want %d", r.Broken(), r.Spec.Count)
		}
	}
}

func TestParseSpec(t *testing.T) {
	s, err := ParseSpec("tcp-long://[fd00:50::60]:80")
	if err != nil || s.String() != "tcp-long://[fd00:50::60]:80*8/50ms" || s.Count != 8 {
		t.Errorf("ParseSpec = %+v, %v", s, err)
	}
	if s, err := ParseSpec("udp-flow://10.0.0.1:53*24@20000"); err != nil ||
		s.String() != "udp-flow://10.0.0.1:53*24@20000/10ms" || s.source(23) != 20023 {
		t.Errorf("ParseSpec = %+v, %v", s, err)
	}
	s, err = ParseSpec("udp-flow://10.0.0.1:80*12/20ms")
	if err != nil || s.Count != 12 || s.Interval != 20*time.Millisecond {
		t.Errorf("ParseSpec = %+v, %v", s, err)
	}
	for _, bad := range []string{"", "udp-new://10.0.0.1:53@20000", "udp-flow://10.0.0.1:53@0",
		"udp-flow://10.0.0.1:53*2@65535", "tcp://10.0.0.1:80", "tcp-new://10.0.0.1", "tcp-new://host:80",
		"udp-new://10.0.0.1:0", "tcp-long://10.0.0.1:80*0", "tcp-new://10.0.0.1:80*2", "udp-new://10.0.0.1:80/0s",
		"udp-new://10.0.0.1:80/x"} {
		if _, err := ParseSpec(bad); err == nil {
			t.Errorf("ParseSpec(%q) succeeded", bad)
		}
	}
}
