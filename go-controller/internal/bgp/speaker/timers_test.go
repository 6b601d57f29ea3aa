// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
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

// A session without a hold time is not in OpenConfirm indefinitely if the router sends no KEEPALIVE.
func TestSessionEndsWithoutFirstKeepalive(t *testing.T) {
	for _, c := range []struct {
		hold uint16
		wait time.Duration
		want string
	}{
		{0, openWait, "the peer sent an OPEN message without a hold time, and no KEEPALIVE within 10s"},
		{90, 90 * time.Second, "hold timer expired: the peer sent no KEEPALIVE or UPDATE for 1m30s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := victim()
			n.Hold = 90 * time.Second
			ours, router := net.Pipe()
			s, in := startSession(t, ours, n, nil), collect(router)
			send(t, router, openOf(t, 64512, c.hold, "192.0.2.2"))
			if got := kinds(in.take()); got != "open keepalive" || s.observed().phase != OpenConfirm {
				t.Fatalf("hold time %d: the router receives %q in phase %s", c.hold, got, s.observed().phase)
			}
			<-time.After(c.wait - 1)
			synctest.Wait()
			if phase := s.observed().phase; phase != OpenConfirm {
				t.Fatalf("hold time %d: phase %s too early", c.hold, phase)
			}
			in.take()
			<-time.After(time.Nanosecond)
			m := in.take()
			last := m[max(len(m)-1, 0):] // A KEEPALIVE may be due at the same time.
			if kinds(last) != "notification" || last[0][headerLength] != packet.BGP_ERROR_HOLD_TIMER_EXPIRED {
				t.Errorf("hold time %d: the router receives %v", c.hold, m)
			}
			if saw := s.observed(); saw.why != (reason{kind: detected, text: c.want}) {
				t.Errorf("hold time %d: %+v", c.hold, saw)
			}
		})
	}
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
		want := sendHoldExpired(3 * time.Second)
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
			if saw := ended(t, s); !strings.HasPrefix(saw.why.text, "hold timer expired: the peer sent no ") {
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

// Only complete KEEPALIVEs and UPDATEs restart the hold timer (RFC 4271 section 8.2.2).
func TestHoldTimerIsNotRestartedByLess(t *testing.T) {
	update := newMessage(packet.BGP_MSG_UPDATE, make([]byte, 4000)...)
	request := newMessage(packet.BGP_MSG_ROUTE_REFRESH, 0, 1, 0, 1)
	for name, c := range map[string]struct {
		pieces [][]byte
		every  time.Duration
	}{
		"octets of an UPDATE": {slices.Collect(slices.Chunk(update, 1)), 700 * time.Millisecond},
		"parts of an UPDATE":  {slices.Collect(slices.Chunk(update, 10)), 3*time.Second - 1},
		"requests":            {slices.Repeat([][]byte{request}, 60), 700 * time.Millisecond},
		"many requests":       {slices.Repeat([][]byte{request}, 100_000), 7 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, router, in := establish(t, victim(), nil, openOf(t, 64512, 3, "192.0.2.2"))
			start := time.Now()
			for _, piece := range c.pieces {
				if _, err := router.Write(piece); err != nil {
					break
				}
				<-time.After(c.every)
			}
			in.take()
			saw := ended(t, s)
			if took := saw.since.Sub(start); took != 3*time.Second || !strings.HasPrefix(saw.why.text, "hold timer expired") {
				t.Errorf("%s: it ends after %s: %+v", name, took, saw.why)
			}
		})
	}
}

// What follows many requests for routes is read at once, and the requests are answered together.
func TestRequestsDoNotHideWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routes := map[netip.Prefix]bgp.Attributes{
			netip.MustParsePrefix("203.0.113.1/32"): {NextHop: netip.MustParseAddr("192.0.2.1")}}
		s, router, in := establish(t, victim(), routes, openOf(t, 64512, 90, "192.0.2.2"))
		in.take()
		request := newMessage(packet.BGP_MSG_ROUTE_REFRESH, 0, 1, 0, 1)
		gets := func(want string) {
			t.Helper()
			if got := kinds(in.take()); got != want {
				t.Errorf("the router receives %q, want %q", got, want)
			}
		}
		send(t, router, request)
		gets("update")
		send(t, router, slices.Repeat([][]byte{request}, 1000)...)
		<-time.After(refreshPause - 1)
		gets("")
		<-time.After(1)
		gets("update")
		<-time.After(refreshPause)
		gets("")
		send(t, router, slices.Repeat([][]byte{request}, 1000)...)
		send(t, router, newMessage(packet.BGP_MSG_NOTIFICATION, packet.BGP_ERROR_CEASE, 2))
		synctest.Wait()
		if phase := s.observed().phase; phase != Idle {
			t.Errorf("the session is %s after the NOTIFICATION", phase)
		}
	})
}

// Messages that wait in the kernel when the process continues after the hold time are read, once.
func TestLateReadAfterTheHoldTime(t *testing.T) {
	ours, router := pair(t)
	s := newSession(target{neighbor: victim()}, ours, netip.Addr{}, nil, func() {})
	held := &heldReader{session: s, expires: time.Now().Add(-time.Second)}
	if err := ours.SetReadDeadline(held.expires); err != nil {
		t.Fatal(err)
	}
	send(t, router, keepalive())
	buf := make([]byte, 1)
	if n, err := held.Read(buf); n != 1 || err != nil {
		t.Fatalf("%d octets are read: %v", n, err)
	}
	if err := ours.SetReadDeadline(held.expires); err != nil { // the time of the late read is over
		t.Fatal(err)
	}
	if n, err := held.Read(buf); !isTimeout(err) {
		t.Errorf("%d octets are read after that: %v", n, err)
	}
}
