// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// pair returns both ends of a TCP connection: the end that dialed, and the other.
func pair(t *testing.T) (ours, router *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialed.Close(); _ = accepted.Close() })
	if err := accepted.SetDeadline(time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// startSession runs a session, and aborts it when the test ends.
func startSession(t *testing.T, conn net.Conn, n bgp.Neighbor, routes map[netip.Prefix]bgp.Attributes) *session {
	t.Helper()
	s := newSession(target{neighbor: n}, conn, netip.MustParseAddr("192.0.2.1"), routes, func() {})
	go s.run(n, "node")
	t.Cleanup(func() { s.abort(reason{}) })
	return s
}

func ended(t *testing.T, s *session) connState {
	t.Helper()
	await.Receive(t, "the session ends", s.done)
	return s.observed()
}

func send(t *testing.T, conn net.Conn, messages ...[]byte) {
	t.Helper()
	if _, err := conn.Write(bytes.Join(messages, nil)); err != nil {
		t.Fatal(err)
	}
}

// inbox collects the messages that a router receives, in a synctest bubble.
type inbox struct {
	mu       sync.Mutex
	messages [][]byte
	end      error
}

func collect(conn net.Conn) *inbox {
	i := &inbox{}
	go func() {
		in, buf := bufio.NewReader(conn), make([]byte, maxMessage)
		for {
			m, err := next(in, buf)
			i.mu.Lock()
			if err != nil {
				i.end = err
				i.mu.Unlock()
				return
			}
			i.messages = append(i.messages, bytes.Clone(m))
			i.mu.Unlock()
		}
	}()
	return i
}

// take returns the messages that have arrived since the last call, when all goroutines wait.
func (i *inbox) take() [][]byte {
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.messages
	i.messages = nil
	return all
}

func (i *inbox) closed() bool {
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.end != nil
}

// establish runs a session with a router that answers our OPEN, and takes the messages up to the first routes.
func establish(t *testing.T, n bgp.Neighbor, routes map[netip.Prefix]bgp.Attributes, open []byte) (*session, net.Conn,
	*inbox) {
	t.Helper()
	ours, router := net.Pipe()
	s, in := startSession(t, ours, n, routes), collect(router)
	send(t, router, open, keepalive())
	synctest.Wait()
	if phase := s.observed().phase; phase != Established {
		t.Fatalf("phase %s: %+v", phase, s.observed())
	}
	return s, router, in
}

// A session lasts until the router makes an error. The router receives the matching NOTIFICATION.
func TestSessionRejectsInvalidMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, router, in := establish(t, victim(), nil, openOf(t, 64512, 90, "192.0.2.2", both()...))
		if saw := s.observed(); saw.asn != 64512 || saw.local != netip.MustParseAddr("192.0.2.1") ||
			saw.families != (Families{true, true}) {
			t.Errorf("%+v", saw)
		}
		if got := kinds(in.take()); got != "open keepalive update update" {
			t.Errorf("the router receives %s", got)
		}
		send(t, router, newMessage(9))
		if m := in.take(); kinds(m) != "notification" || string(m[0][headerLength:]) != "\x01\x03\x09" {
			t.Errorf("the router receives %v", m)
		}
		if saw := ended(t, s); saw.lasted == 0 || saw.phase != Idle || !strings.Contains(saw.why.text, "type 9") ||
			saw.notifications.sent != 1 {
			t.Errorf("%+v", saw)
		}
	})
}

// The last message is received before the connection is closed, even if data from the router is still unread.
func TestSessionDeliversCease(t *testing.T) {
	t.Parallel()
	ours, router := pair(t)
	s := startSession(t, ours, victim(), nil)
	send(t, router, openOf(t, 64512, 90, "192.0.2.2"), keepalive())
	in, buf := bufio.NewReader(router), make([]byte, maxMessage)
	for m := []byte(nil); m == nil || m[typeAt] != packet.BGP_MSG_UPDATE; {
		var err error
		if m, err = next(in, buf); err != nil {
			t.Fatal(err)
		}
	}
	send(t, router, bytes.Repeat(newMessage(packet.BGP_MSG_UPDATE, make([]byte, 4000)...), 20))
	closing := make(chan struct{})
	go func() { defer close(closing); s.close("bye") }()
	m, err := next(in, buf)
	if err != nil || string(m[headerLength:]) != "\x06\x02\x03bye" {
		t.Errorf("the router receives %v (%v)", m, err)
	}
	if _, err := next(in, buf); !errors.Is(err, io.EOF) {
		t.Errorf("and then %v", err)
	}
	_ = router.Close()
	await.Receive(t, "the session is closed", closing)
	if saw := ended(t, s); saw.why.text != "sent notification: code 6(cease) subcode 2(administrative shutdown)" ||
		saw.notifications.sent != 1 {
		t.Errorf("%+v", saw)
	}
}

// If our own write fails because the router has closed the connection, its NOTIFICATION is still read.
func TestSessionReportsTheRoutersReason(t *testing.T) {
	t.Parallel()
	ours, router := pair(t)
	if err := ours.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s := newSession(target{neighbor: victim()}, ours, netip.Addr{}, nil, func() {})
	s.lastRead = await.Limit
	go s.run(victim(), "node")
	<-s.ending
	send(t, router, newMessage(packet.BGP_MSG_NOTIFICATION, 6, 2))
	if err := router.Close(); err != nil {
		t.Fatal(err)
	}
	want := "received notification: code 6(cease) subcode 2(administrative shutdown)"
	if saw := ended(t, s); saw.why.text != want || saw.notifications.received != 1 {
		t.Errorf("the session ended because of %+v, want %q", saw, want)
	}
}

// A router that closes the connection at once has not configured this node.
func TestSessionReportsEarlyClose(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*net.TCPConn){
		"closes": func(c *net.TCPConn) { _ = c.Close() },
		"resets": func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
		"closes after its OPEN": func(c *net.TCPConn) {
			send(t, c, openOf(t, 64512, 90, "192.0.2.2"))
			_ = c.CloseWrite()
		},
	} {
		ours, router := pair(t)
		end(router)
		s := startSession(t, ours, victim(), nil)
		if saw, want := ended(t, s), (reason{text: closed, kind: unexplained}); saw.why != want || saw.lasted != 0 {
			t.Errorf("a router that %s: %+v", name, saw)
		}
	}
}

// A path failure ends the session at once, also while the router reads nothing.
func TestPathFailureEndsTheSessionAtOnce(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, router, in := establish(t, victim(), nil, openOf(t, 64512, 90, "192.0.2.2"))
			in.take()
			if !reads {
				ours, silent := net.Pipe()
				s, router = startSession(t, ours, victim(), nil), silent
			}
			start := time.Now()
			s.closeOnPathFailure(bfdDown())
			if took := time.Since(start); took > ceaseTimeout {
				t.Errorf("it took %s", took)
			}
			if saw := s.observed(); saw.why != bfdDown().reason() || !saw.closed {
				t.Errorf("%+v", saw)
			}
			if m := in.take(); reads && (kinds(m) != "notification" || string(m[0][headerLength:]) != "\x06\x0a") {
				t.Errorf("the router receives %v", m)
			}
			_ = router.Close()
		})
	}
}

// With graceful restart, an edit ends the session without a word, so that the router keeps the routes.
func TestAbortedSessionSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, in := establish(t, victim(), nil, openOf(t, 64512, 90, "192.0.2.2"))
		in.take()
		s.abort(reason{text: renewed, kind: detected})
		if got := in.take(); len(got) > 0 || !in.closed() {
			t.Errorf("the router receives %s", kinds(got))
		}
	})
}

// Routes count when they were written. Until then, but for a second at most, the result is awaited.
func TestRoutesCountWhenWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, router := net.Pipe()
		woken := make(chan struct{}, 1)
		routes := prefixes(3, bgp.Attributes{NextHop: netip.MustParseAddr("192.0.2.1")})
		s := newSession(target{neighbor: victim()}, ours, netip.Addr{}, routes, func() { signal(woken) })
		go s.run(victim(), "node")
		t.Cleanup(func() { s.abort(reason{}) })
		in, buf := bufio.NewReader(router), make([]byte, maxMessage)
		if _, err := next(in, buf); err != nil {
			t.Fatal(err)
		}
		send(t, router, openOf(t, 64512, 90, "192.0.2.2"), keepalive())
		if _, err := next(in, buf); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		<-woken
		if phase := s.observed().phase; phase != Established {
			t.Fatalf("phase %s", phase)
		}
		if got, left := s.advertisedCounts(); got != (counts{pending: 3}) || left != reportAfter {
			t.Errorf("%+v for %s", got, left)
		}
		<-time.After(reportAfter)
		if got, left := s.advertisedCounts(); got != (counts{pending: 3}) || left != 0 {
			t.Errorf("%+v for %s", got, left)
		}
		for range 2 { // the routes and the End-of-RIB are one batch
			if _, err := next(in, buf); err != nil {
				t.Fatal(err)
			}
		}
		<-woken
		if got, left := s.advertisedCounts(); got != (counts{ipv4: 3, updates: 3}) || left != 0 {
			t.Errorf("%+v for %s", got, left)
		}
	})
}
