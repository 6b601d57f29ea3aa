// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// A router that accepts the connection and sends nothing is dropped after a NOTIFICATION.
func TestSessionEndsWithoutOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := victim()
		n.SecurityHops = 3
		ours, router := net.Pipe()
		s, in := startSession(t, ours, n, nil), collect(router)
		if got := kinds(in.take()); got != "open" || s.observed().phase != OpenSent {
			t.Fatalf("the router receives %q in phase %s", got, s.observed().phase)
		}
		<-time.After(openWait - 1)
		if got := in.take(); len(got) > 0 {
			t.Fatalf("the router receives %v too early", got)
		}
		<-time.After(time.Nanosecond)
		if m := in.take(); kinds(m) != "notification" || m[0][headerLength] != packet.BGP_ERROR_HOLD_TIMER_EXPIRED {
			t.Errorf("the router receives %v", m)
		}
		want := reason{kind: unreachable, text: "the peer accepted the connection and sent no OPEN message within 10s: " +
			"does it have TTL security too, and is it within 3 hops?"}
		if saw := ended(t, s); saw.why != want {
			t.Errorf("%+v", saw)
		}
	})
}

// A router that reads nothing is dropped after the hold time, although it sends KEEPALIVEs.
func TestSessionEndsIfTheRouterReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, router := net.Pipe()
		s, in := startSession(t, ours, victim(), nil), bufio.NewReader(router)
		buf := make([]byte, maxMessage)
		if _, err := next(in, buf); err != nil { // our OPEN
			t.Fatal(err)
		}
		send(t, router, openOf(t, 64512, 3, "192.0.2.2"), keepalive())
		start := time.Now()
		for {
			<-time.After(time.Second)
			if _, err := router.Write(keepalive()); err != nil {
				break
			}
		}
		want := reason{text: "the peer accepted no data for the hold time of 3s", kind: detected}
		if saw := ended(t, s); saw.why != want || saw.notifications.sent != 0 {
			t.Errorf("%+v", saw)
		}
		if took := time.Since(start); took > 3*time.Second+3*cease {
			t.Errorf("it ended after %s", took)
		}
	})
}

// Each side sends KEEPALIVEs in the negotiated time. If either side offers 0, there are none but the first, and silence
// is not an error.
func TestSessionHoldTime(t *testing.T) {
	for _, c := range []struct {
		ours                  time.Duration
		theirs                uint16
		keepalive             time.Duration
		interval, expireAfter time.Duration
	}{
		{90 * time.Second, 30, time.Hour, 10 * time.Second, 30 * time.Second},
		{90 * time.Second, 180, 0, 30 * time.Second, 90 * time.Second},
		{90 * time.Second, 30, time.Second, time.Second, 30 * time.Second},
		{90 * time.Second, 0, time.Second, 0, 0}, {0, 30, time.Second, 0, 0}, {0, 0, time.Second, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := victim()
			n.Hold, n.Keepalive = c.ours, c.keepalive
			s, router, in := establish(t, n, nil, openOf(t, 64512, c.theirs, "192.0.2.2"))
			if got := kinds(in.take()); got != "open keepalive update" {
				t.Errorf("%+v: the router receives %s", c, got)
			}
			if c.interval == 0 {
				<-time.After(24 * time.Hour)
				if got := in.take(); len(got) > 0 || s.observed().phase != Established {
					t.Errorf("%+v: the router receives %q, phase %s", c, kinds(got), s.observed().phase)
				}
				return
			}
			<-time.After(c.expireAfter - 1)
			want := strings.TrimSpace(strings.Repeat("keepalive ", int((c.expireAfter-1)/c.interval)))
			if got := kinds(in.take()); got != want {
				t.Errorf("%+v: the router receives %q, want %q", c, got, want)
			}
			send(t, router, keepalive())
			<-time.After(c.expireAfter - 1)
			if phase := s.observed().phase; phase != Established {
				t.Errorf("%+v: phase %s before the hold time has expired", c, phase)
			}
			<-time.After(time.Nanosecond)
			if saw := ended(t, s); !strings.HasPrefix(saw.why.text, "hold timer expired: the peer sent nothing for ") {
				t.Errorf("%+v: %+v", c, saw)
			}
		})
	}
}

// A new interval applies at once.
func TestKeepaliveIntervalIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := victim()
		s, _, in := establish(t, n, nil, openOf(t, 64512, 90, "192.0.2.2"))
		in.take()
		n.Keepalive = 5 * time.Second
		s.setKeepalive(n)
		<-time.After(n.Keepalive)
		if got := kinds(in.take()); got != "keepalive" {
			t.Errorf("the router receives %q after %s", got, n.Keepalive)
		}
	})
}
