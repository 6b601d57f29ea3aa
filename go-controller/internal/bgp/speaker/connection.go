// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// openWait is how long a router may take to answer our OPEN with its own. RFC 4271 suggests 4 min.
	openWait = 10 * time.Second
	// joinWait is how long gobgp may take to connect. It dials after 1-2 s.
	joinWait = 10 * time.Second
	// refreshPause is the minimum interval between two ROUTE-REFRESH requests that are passed on. Each of them makes
	// gobgp send all routes.
	refreshPause = 500 * time.Millisecond
	// batch limits the bytes that are written to a router at once.
	batch = 1 << 16
	// ceaseTimeout limits the wait for the last message to a router that may be unreachable.
	ceaseTimeout = 10 * time.Millisecond
)

// connection joins the TCP connection to a router with that of gobgp. Either may be established first. Messages from
// gobgp are passed unchanged, messages from the router through the filter. A connection buffers one batch and one
// message, so a side that does not read blocks the other.
//
// It ends when either side closes, and then briefly waits until the other side has received the last messages.
type connection struct {
	listener *listener
	wake     func()
	// writeLock is a lock held while writing to the router.
	writeLock chan struct{}
	// joined is closed when gobgp's connection is established, attached when the router's is, ending when the
	// connection begins to close, and done when it is closed.
	joined, attached, ending, done chan struct{}

	// retimed has a token if keepalive or hold changed.
	retimed chan struct{}

	mu sync.Mutex
	// openTimeout is openWait, and lastRead, which is how long the last messages of both sides are awaited, is cease,
	// except in tests.
	openTimeout, lastRead time.Duration
	// router and ours are nil until they are connected.
	router, ours *net.TCPConn
	ends         bool
	// hold limits the silence of the router and the duration of a write to it; 0 for no limit. keepalive is the
	// configured interval between two KEEPALIVEs.
	hold, keepalive time.Duration
	// lastWrite is the time until which writes to the router may take, once the session is being closed; zero before.
	lastWrite time.Time
	// ceaseSent means that the last message to the router was sent. It is guarded by writeLock.
	ceaseSent bool
	seen      connState
	// openSent means that our OPEN was sent, keepaliveReceived that the router's KEEPALIVE was received.
	openSent, keepaliveReceived bool
}

// newConnection returns a connection to a neighbor that waits for both ends. wake is called, and must not block, when
// the result of observed has changed.
func newConnection(n bgp.Neighbor, wake func()) (*connection, error) {
	d, err := newListener()
	if err != nil {
		return nil, err
	}
	return &connection{
		listener: d, wake: wake, writeLock: make(chan struct{}, 1),
		joined: make(chan struct{}), attached: make(chan struct{}), ending: make(chan struct{}), done: make(chan struct{}),
		retimed: make(chan struct{}, 1), openTimeout: openWait, lastRead: cease, hold: openWait,
		keepalive: n.Keepalive,
		seen:      connState{phase: Active, since: time.Now()},
	}, nil
}

// attach takes over the connection to the router, in which we have the local address. It may be called once, and closes
// the router's connection if this connection has ended.
func (l *connection) attach(router *net.TCPConn, local netip.Addr) {
	ends := false
	l.change(func() {
		if ends = l.ends; !ends {
			l.router, l.seen.local = router, local
			l.startOpenTimer()
			close(l.attached)
		}
	})
	if ends {
		_ = router.Close() // Nothing was sent on it.
	}
}

// startOpenTimer starts the time limit for the router's OPEN when ours can be sent. The caller holds mu.
func (l *connection) startOpenTimer() {
	if l.router != nil && l.ours != nil && !l.ends {
		_ = l.router.SetReadDeadline(time.Now().Add(l.openTimeout)) // It may be closed.
	}
}

// conns returns the connections to the router and to gobgp, nil for one that is not established.
func (l *connection) conns() (router, ours *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.router, l.ours
}

// run passes messages until the connection ends.
func (l *connection) run(n bgp.Neighbor) {
	var running sync.WaitGroup
	running.Go(func() { l.receive(n) })
	running.Go(func() { l.forwardToRouter(n) })
	running.Go(l.sendKeepalives)
	running.Wait()
	l.close()
	l.change(func() { l.seen.closed = true })
	close(l.done)
	l.wake()
}

// limitWrites limits all writes to the router from now on, also one that is blocked. gobgp can't be stopped while its
// own write waits for them.
func (l *connection) limitWrites(timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastWrite = time.Now().Add(timeout)
	if l.router != nil {
		_ = l.router.SetWriteDeadline(l.lastWrite) // It may be closed.
	}
}

// end closes the connection. The router has the given time to receive gobgp's last messages.
func (l *connection) end(timeout time.Duration) {
	l.beginClose(reason{})
	l.limitWrites(timeout)
	timer := time.NewTimer(2 * timeout)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
		l.close()
		<-l.done
	}
}

// observed returns the observed state.
func (l *connection) observed() connState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// change updates the observed state, and calls wake if it has changed.
func (l *connection) change(f func()) {
	l.mu.Lock()
	was := l.seen
	f()
	next := was.phase
	switch {
	case l.ends:
		next = Idle
	case l.seen.keepaliveSent && l.keepaliveReceived:
		next = Established
	case l.seen.keepaliveSent:
		next = OpenConfirm
	case l.openSent:
		next = OpenSent
	case l.router != nil:
		next = Connect
	}
	if next != l.seen.phase {
		l.seen.phase, l.seen.since = next, time.Now()
	}
	events := was != l.seen
	l.mu.Unlock()
	if events {
		l.wake()
	}
}

// beginClose begins to close the connection. The first reason given is kept; the zero reason is none. But what the
// router says explains why our own write has failed.
func (l *connection) beginClose(why reason) {
	l.change(func() {
		if !l.ends {
			l.ends = true
			close(l.ending)
			if l.seen.phase == Established {
				l.seen.lasted = max(time.Since(l.seen.since), 1)
			}
			l.seen.asn = 0
		}
		if l.seen.why.text == "" || l.seen.why.kind == unexplained && why.kind >= transient {
			l.seen.why = why
		}
	})
	l.listener.close()
}

// close closes all sockets.
func (l *connection) close() {
	l.listener.close()
	router, ours := l.conns()
	for _, conn := range []*net.TCPConn{ours, router} {
		if conn != nil {
			_ = conn.Close() // All messages have been sent.
		}
	}
}

// receive passes messages from the router until the router closes the connection or sends an invalid message.
func (l *connection) receive(n bgp.Neighbor) {
	select {
	case <-l.attached:
	case <-l.ending:
	}
	router, ours := l.conns()
	if router == nil {
		if ours != nil {
			_ = ours.Close()
		}
		return
	}
	f := filter{neighbor: n}
	err := l.listen(router, &f)
	var r *notificationError
	var said *receivedNotification
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() && !l.isEnding() {
		err = &notificationError{code: packet.BGP_ERROR_HOLD_TIMER_EXPIRED, text: l.silenceMessage(n, &f)}
	}
	switch {
	case errors.As(err, &r):
		why := r.reason()
		if r.code == packet.BGP_ERROR_HOLD_TIMER_EXPIRED && f.stage == beginning {
			why.kind = unreachable
		}
		l.beginClose(why)
		l.sendNotification(r)
	case errors.As(err, &said):
		l.change(func() { l.seen.notifications.received++ })
		l.beginClose(said.reason())
	case l.isEnding():
	case f.stage < talking:
		l.beginClose(reason{text: closed, kind: unexplained})
	default:
		l.beginClose(reason{text: lost, kind: unexplained})
	}
	if _, ours := l.conns(); ours != nil { // Then gobgp closes its end.
		_ = ours.CloseWrite()
		_ = ours.SetReadDeadline(time.Now().Add(l.lastRead))
	}
	// A socket that is closed with unread data resets the connection, and the last messages may be lost.
	_ = router.SetReadDeadline(time.Now().Add(l.lastRead))
	_, _ = io.Copy(io.Discard, router)
}

func (l *connection) isEnding() bool {
	select {
	case <-l.ending:
		return true
	default:
		return false
	}
}

// listen passes messages from the router, and returns the reason why it ends.
func (l *connection) listen(router *net.TCPConn, f *filter) error {
	in, buf := bufio.NewReader(&deadlineReader{l, router, f}), make([]byte, maxMessage)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		m, err := next(in, buf)
		if err != nil {
			return err
		}
		m, err = f.process(m)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if m[typeAt] == packet.BGP_MSG_ROUTE_REFRESH {
			<-pause.C
			pause.Reset(refreshPause)
		}
		select {
		case <-l.joined:
		case <-l.ending:
			return net.ErrClosed
		}
		if m[typeAt] == packet.BGP_MSG_OPEN {
			l.change(func() { l.seen.asn, l.seen.families, l.hold = f.asn, f.negotiated(), f.hold })
			setHold(m, maxHold)
		}
		if _, err := l.ours.Write(m); err != nil {
			<-l.ending // gobgp has closed, and its last message is the reason.
			return net.ErrClosed
		}
		if m[typeAt] == packet.BGP_MSG_KEEPALIVE {
			l.change(func() { l.keepaliveReceived = true })
		}
	}
}
