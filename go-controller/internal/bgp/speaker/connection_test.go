// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
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
	ours = probeListener(t, listener.Addr().String())
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return ours, conn.(*net.TCPConn)
}

func probeListener(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// newTestConnection returns a connection, and the ends that a router and gobgp have.
func newTestConnection(t *testing.T, n bgp.Neighbor, change ...func(*connection)) (l *connection, router,
	speaker *net.TCPConn) {
	t.Helper()
	ours, router := pair(t)
	l, err := newConnection(n, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(l)
	}
	l.attach(ours, localOf(ours, ""))
	go l.run(n)
	t.Cleanup(func() { l.end(0) })
	return l, router, probeListener(t, fmt.Sprint("127.0.0.1:", l.listener.port()))
}

func ended(t *testing.T, l *connection) connState {
	t.Helper()
	await.Receive(t, "the connection ends", l.done)
	return l.observed()
}

func send(t *testing.T, conn net.Conn, messages ...[]byte) {
	t.Helper()
	for _, m := range messages {
		if _, err := conn.Write(m); err != nil {
			t.Fatal(err)
		}
	}
}

// expect reads messages of the given types, and then EOF.
func expect(t *testing.T, conn net.Conn, types ...byte) (last []byte) {
	t.Helper()
	in, buf := bufio.NewReader(conn), make([]byte, maxMessage)
	for i, kind := range types {
		m, err := next(in, buf)
		if err != nil || m[typeAt] != kind {
			t.Fatalf("message %d is %v (%v), want type %d", i, m, err, kind)
		}
		last = m
	}
	if m, err := next(in, make([]byte, maxMessage)); !errors.Is(err, io.EOF) {
		t.Fatalf("after %d messages: %v (%v), want the end", len(types), m, err)
	}
	return last
}

// A router that closes the connection at once is distinguished from one that is silent and one that sends data.
func TestDialReportsEarlyClose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(net.Conn)
		// settling is short only for a router of which nothing is expected.
		settling time.Duration
		want     string
	}{
		"closes":            {func(c net.Conn) { _ = c.Close() }, time.Minute, closed},
		"resets":            {func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, time.Minute, closed},
		"is silent":         {func(net.Conn) {}, time.Millisecond, ""},
		"talks":             {func(c net.Conn) { _, _ = c.Write(keepalive()) }, time.Minute, ""},
		"talks, and closes": {func(c net.Conn) { _, _ = c.Write(keepalive()); _ = c.Close() }, time.Minute, ""},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		router := make(chan net.Conn, 1)
		go func() {
			defer close(router)
			if conn, err := listener.Accept(); err == nil {
				c.does(conn)
				router <- conn
			}
		}()
		n, at := victim(), listener.Addr().(*net.TCPAddr).AddrPort()
		n.Port = at.Port()
		conn, err := dial(t.Context(), target{neighbor: n, addr: at.Addr()}, c.settling)
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("a router that %s: %v, want %q", name, err, c.want)
		}
		if err == nil && strings.HasPrefix(name, "talks") {
			if _, err := next(bufio.NewReader(conn), make([]byte, maxMessage)); err != nil {
				t.Errorf("a router that %s: error %v", name, err)
			}
		}
		if conn := <-router; conn != nil {
			_ = conn.Close()
		}
	}
}

// A session lasts until the router makes an error. gobgp receives nothing of it, and the router receives the matching
// NOTIFICATION.
func TestConnectionRejectsInvalidMessages(t *testing.T) {
	t.Parallel()
	l, router, speaker := newTestConnection(t, victim())
	if phase := l.observed().phase; phase != Connect {
		t.Errorf("phase %s at first", phase)
	}
	open := openOf(t, 64512, 90, "192.0.2.2", both()...)
	send(t, speaker, open, keepalive())
	send(t, router, open, keepalive())
	await.NoError(t, "the session is Established", func(context.Context) error {
		if saw := l.observed(); saw.phase != Established {
			return fmt.Errorf("%+v", saw)
		}
		return nil
	})
	if saw := l.observed(); saw.asn != 64512 || saw.local != loopback() {
		t.Errorf("%+v", saw)
	}
	send(t, router, newMessage(9))
	if _, err := io.Copy(io.Discard, speaker); err != nil {
		t.Errorf("gobgp's end: %v", err)
	}
	_ = speaker.Close()
	if m := expect(t, router, packet.BGP_MSG_OPEN, packet.BGP_MSG_KEEPALIVE,
		packet.BGP_MSG_NOTIFICATION); string(m[headerLength:]) != "\x01\x03\x09" {
		t.Errorf("the router receives %v", m)
	}
	if saw := ended(t, l); saw.lasted == 0 || saw.phase != Idle || !strings.Contains(saw.why.text, "type 9") ||
		saw.notifications.sent != 1 {
		t.Errorf("%+v", saw)
	}
}

// The last messages of gobgp are sent before the connection is closed, even if data from the router is still unread.
func TestConnectionDeliversCease(t *testing.T) {
	t.Parallel()
	l, router, speaker := newTestConnection(t, victim())
	send(t, router, openOf(t, 64512, 90, "192.0.2.2"), keepalive(), newMessage(packet.BGP_MSG_UPDATE,
		make([]byte, 4000)...))
	send(t, speaker, newMessage(packet.BGP_MSG_NOTIFICATION, 6, 2))
	<-l.joined // Only an open socket is recognized as our own.
	_ = speaker.Close()
	expect(t, router, packet.BGP_MSG_NOTIFICATION)
	_ = router.Close()
	if saw := ended(t, l); saw.why.text != "sent notification: code 6(cease) subcode 2(administrative shutdown)" ||
		saw.notifications.sent != 1 {
		t.Errorf("%+v", saw)
	}
}

// If our own write fails because the router has closed the connection, its NOTIFICATION is still read.
func TestConnectionReportsTheRoutersReason(t *testing.T) {
	t.Parallel()
	l, router, speaker := newTestConnection(t, victim(), func(l *connection) { l.lastRead = await.Limit })
	conn, _ := l.conns()
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	send(t, speaker, openOf(t, 64512, 90, "192.0.2.1", both()...))
	<-l.ending
	send(t, router, newMessage(packet.BGP_MSG_NOTIFICATION, 6, 2))
	if err := router.Close(); err != nil {
		t.Fatal(err)
	}
	want := "received notification: code 6(cease) subcode 2(administrative shutdown)"
	if saw := ended(t, l); saw.why.text != want {
		t.Errorf("the session ended because of %q, want %q", saw.why.text, want)
	}
}

// It is also read if the write fails before anything was read.
func TestConnectionReportsTheRoutersReasonAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		ours, router := pair(t)
		l, err := newConnection(victim(), func() {})
		if err != nil {
			t.Fatal(err)
		}
		l.attach(ours, localOf(ours, ""))
		l.beginClose(reason{text: lost, kind: unexplained})
		send(t, router, newMessage(packet.BGP_MSG_NOTIFICATION, 6, 2))
		if err := router.Close(); err != nil {
			t.Fatal(err)
		}
		go l.run(victim())
		if saw := ended(t, l); !strings.HasPrefix(saw.why.text, bgp.ReceivedNotification) {
			t.Fatalf("the session ended because of %q", saw.why.text)
		}
	}
}

// A router that accepts the connection and sends nothing is dropped after a NOTIFICATION.
func TestConnectionEndsWithoutOpen(t *testing.T) {
	t.Parallel()
	n := victim()
	n.SecurityHops = 3
	l, router, speaker := newTestConnection(t, n)
	send(t, speaker, openOf(t, 64500, 90, "192.0.2.1"))
	if m, err := next(bufio.NewReader(router), make([]byte, maxMessage)); err != nil || m[typeAt] != packet.BGP_MSG_OPEN {
		t.Fatalf("the router receives %v (%v), want an OPEN", m, err)
	}
	l.mu.Lock()
	l.openTimeout = 100 * time.Millisecond
	l.startOpenTimer()
	l.mu.Unlock()
	if _, err := io.Copy(io.Discard, speaker); err != nil {
		t.Errorf("gobgp's end: %v", err)
	}
	_ = speaker.Close()
	if m := expect(t, router, packet.BGP_MSG_NOTIFICATION); m[headerLength] != packet.BGP_ERROR_HOLD_TIMER_EXPIRED {
		t.Errorf("the router receives %v", m)
	}
	want := reason{kind: unreachable, text: "the peer accepted the connection and sent no OPEN message within 100ms: " +
		"does it have TTL security too, and is it within 3 hops?"}
	if saw := ended(t, l); saw.why != want {
		t.Errorf("%+v", saw)
	}
}

// A router that reads nothing blocks gobgp, and is dropped after the hold time. No buffer grows in the meantime.
func TestConnectionBackpressure(t *testing.T) {
	t.Parallel()
	l, router, speaker := newTestConnection(t, victim())
	open := openOf(t, 64512, 3, "192.0.2.2")
	send(t, router, open, keepalive())
	send(t, speaker, open, keepalive())
	// Like gobgp, the speaker advertises nothing before it has the router's OPEN, and with it the hold time.
	in, buf := bufio.NewReader(speaker), make([]byte, maxMessage)
	for range 2 {
		if _, err := next(in, buf); err != nil {
			t.Fatal(err)
		}
	}
	go func() { // The router is alive, more often than it has to be; it only does not read.
		for alive := time.NewTicker(10 * time.Millisecond); ; <-alive.C {
			if _, err := router.Write(keepalive()); err != nil {
				alive.Stop()
				return
			}
		}
	}()
	wrote, update := 0, newMessage(packet.BGP_MSG_UPDATE, make([]byte, 4000)...)
	for {
		n, err := speaker.Write(update)
		wrote += n
		if err != nil {
			break // The connection ended, and closed its end.
		}
		if wrote > 64<<20 {
			t.Fatalf("%d bytes were taken that the router did not read", wrote)
		}
	}
	if saw := ended(t, l); saw.why.text != "the peer accepted no data for the hold time of 3s" {
		t.Errorf("%+v", saw)
	}
}

// The connection manages the negotiated hold time, while gobgp only receives its own. If either side sends 0, there are
// no KEEPALIVEs but the first, and silence is not an error.
func TestConnectionHoldTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours   time.Duration
		theirs uint16
		want   time.Duration
	}{{90 * time.Second, 30, 30 * time.Second}, {90 * time.Second, 0, 0}, {0, 30, 0}, {0, 0, 0}} {
		n := victim()
		n.Hold, n.Keepalive = c.ours, time.Second
		l, router, speaker := newTestConnection(t, n)
		send(t, router, openOf(t, 64512, c.theirs, "192.0.2.2"), keepalive())
		send(t, speaker, openOf(t, 64500, 65535, "192.0.2.1"), keepalive(), keepalive())
		in, out, buf := bufio.NewReader(router), bufio.NewReader(speaker), make([]byte, maxMessage)
		for end, want := range map[*bufio.Reader]time.Duration{in: c.ours, out: maxHold} {
			m, err := next(end, buf)
			if err != nil || m[typeAt] != packet.BGP_MSG_OPEN ||
				time.Duration(binary.BigEndian.Uint16(m[holdAt:]))*time.Second != want {
				t.Fatalf("%+v: %v, %v, want an OPEN with hold time %s", c, m, err, want)
			}
			if m, err := next(end, buf); err != nil || m[typeAt] != packet.BGP_MSG_KEEPALIVE {
				t.Fatalf("%+v: %v, %v, want a KEEPALIVE", c, m, err)
			}
		}
		if l.hold != c.want {
			t.Errorf("%+v: hold time %s", c, l.hold)
		}
		if want := min(c.want, time.Second); l.interval() != want {
			t.Errorf("%+v: KEEPALIVEs every %s, want %s", c, l.interval(), want)
		}
		_ = router.Close()
		_ = speaker.Close()
		ended(t, l)
	}
}

// The listener accepts no connection from another process.
func TestListenerAcceptsOwnProcessOnly(t *testing.T) {
	t.Parallel()
	d, err := newListener()
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo in && cat <&3", d.port()))
	client.Stderr = os.Stderr
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "in\n" {
		t.Fatalf("the other client did not connect: %q, %v", line, err)
	}
	conn := probeListener(t, fmt.Sprint("127.0.0.1:", d.port()))
	in, err := d.accept(await.Limit)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if in.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Errorf("%s came in, want %s", in.RemoteAddr(), conn.LocalAddr())
	}
	if err := client.Wait(); err != nil { // The listener closes its connection.
		t.Errorf("the other client: %v", err)
	}
	if late, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", d.port())); err == nil {
		_ = late.Close()
		t.Error("the listener is open still")
	}
}
