// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// openWait is how long a router may take to answer our OPEN with its own, and to send its first KEEPALIVE if there is
	// no hold time. RFC 4271 suggests 4 min.
	openWait = 10 * time.Second
	// cease limits the wait until the peer has received the last messages, and then the wait until it has closed.
	cease = time.Second
	// ceaseTimeout limits the wait for the last message to a router that may be unreachable.
	ceaseTimeout = 10 * time.Millisecond
)

// session is an open connection to a router, and the state machine of RFC 4271 section 8 from Connect on. One goroutine
// reads, another one writes; neither waits for the other. A session ends when either side ends it or a message is not
// acceptable, and then briefly waits until the router has received the last messages.
type session struct {
	target
	conn net.Conn
	wake func()
	// changed has a token if the writer may have something to do. ending is closed when the session begins to end, and
	// done when the connection is closed.
	changed      chan struct{}
	ending, done chan struct{}
	// sendHold is how long the kernel lets the router accept no data: the configured hold time; 0 for no limit.
	sendHold time.Duration

	mu sync.Mutex
	// openTimeout is openWait, and lastRead, which is how long the router's last messages are awaited, is cease, except
	// in tests.
	openTimeout, lastRead time.Duration
	// hold limits the silence of the router and the duration of a write to it; 0 for no limit. keepalive is the
	// configured interval between two KEEPALIVEs.
	hold, keepalive time.Duration
	// lastWrite is the time until which writes may take, once the session is being closed; zero before.
	lastWrite time.Time
	// openSent, openReceived and the like are messages that were exchanged.
	openSent, openReceived, keepaliveSent, keepaliveReceived bool
	ends                                                     bool
	// shutdown is sent when all routes are; nil while the session is wanted. last is sent when the session ends; nil for
	// no NOTIFICATION.
	shutdown, last *notificationError
	seen           connState
	routes         adjOut
	// requests are the families whose routes the router requests again, and answered is when it last got such routes.
	requests Families
	answered time.Time
}

// connState is the observed state of a session.
type connState struct {
	phase Phase
	since time.Time
	// closed means that the connection is closed. lasted is how long the session was Established, 0 if it never was.
	closed bool
	lasted time.Duration
	asn    uint32
	local  netip.Addr
	// families are those negotiated by the OPENs, from the router's OPEN on.
	families Families
	// why is the first known reason why the session ended or ends.
	why           reason
	notifications notifications
}

// notifications are the numbers of NOTIFICATIONs that were sent to a router and received from it.
type notifications struct{ sent, received uint64 }

func (n *notifications) add(more notifications) {
	n.sent += more.sent
	n.received += more.received
}

// newSession returns a session on a connection to a router, in which we have the local address. run runs it. It has the
// routes from the start: those that came after the End-of-RIB would be missing for a moment. wake is called, and must
// not block, when the result of observed has changed, and when all routes are sent.
func newSession(t target, conn net.Conn, local netip.Addr, routes map[netip.Prefix]bgp.Attributes,
	wake func()) *session {
	return &session{
		target: t, conn: conn, wake: wake,
		changed: make(chan struct{}, 1), ending: make(chan struct{}), done: make(chan struct{}),
		sendHold: t.neighbor.Hold, openTimeout: openWait, lastRead: cease, hold: openWait, keepalive: t.neighbor.Keepalive,
		seen:   connState{phase: Connect, since: time.Now(), local: local},
		routes: adjOut{neighbor: t.neighbor, local: t.local, want: routes},
	}
}

// run runs the session of a node with a name until it has ended.
func (s *session) run(n bgp.Neighbor, node string) {
	var running sync.WaitGroup
	running.Go(func() { s.receive(n) })
	running.Go(func() { s.send(openMessage(n, node)) })
	running.Wait()
	_ = s.conn.Close() // All messages have been sent.
	s.change(func() { s.seen.closed = true })
	close(s.done)
	s.wake()
}

// observed returns the observed state.
func (s *session) observed() connState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// change updates the state, and calls wake if the observed state has changed.
func (s *session) change(f func()) {
	s.mu.Lock()
	was := s.seen
	f()
	next := was.phase
	switch {
	case s.ends:
		next = Idle
	case s.keepaliveSent && s.keepaliveReceived:
		next = Established
	case s.keepaliveSent:
		next = OpenConfirm
	case s.openSent:
		next = OpenSent
	}
	if next != was.phase {
		s.seen.phase, s.seen.since = next, time.Now()
		if next == Established {
			s.routes.start()
		}
	}
	events := was != s.seen
	s.mu.Unlock()
	signal(s.changed)
	if events {
		s.wake()
	}
}

// advertise replaces the wanted routes. The writer sends those that differ once the session is Established, and nothing
// if there is no difference. A route that can't be advertised is withdrawn, and the error names it.
func (s *session) advertise(routes map[netip.Prefix]bgp.Attributes) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes.want = routes
	err := s.routes.plan()
	signal(s.changed)
	return err
}

// requested sends all routes of families again. Requests that follow soon after one are answered together.
func (s *session) requested(f Families) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == (Families{}) {
		time.AfterFunc(time.Until(s.answered.Add(refreshPause)), s.answer)
	}
	s.requests = Families{IPv4: s.requests.IPv4 || f.IPv4, IPv6: s.requests.IPv6 || f.IPv6}
}

// answer sends the routes that the router requests.
func (s *session) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes.refresh(s.requests)
	s.requests, s.answered = Families{}, time.Now()
	signal(s.changed)
}

// advertisedCounts returns what the router has received, and how long that should not be reported because it is about
// to change; 0 for no time.
func (s *session) advertisedCounts() (counts, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends || s.routes.idle() {
		return s.routes.counts, 0
	}
	return s.routes.counts, max(time.Until(s.routes.since.Add(reportAfter)), 0)
}

// setKeepalive changes the interval between KEEPALIVEs.
func (s *session) setKeepalive(n bgp.Neighbor) { s.change(func() { s.keepalive = n.Keepalive }) }

// beginEnd begins to end the session. The first reason given is kept, and the first NOTIFICATION, which may be nil; the
// zero reason is none. But what explains the end supersedes that the connection was closed, which reading and writing
// may find in either order.
func (s *session) beginEnd(why reason, last *notificationError) {
	s.change(func() {
		if !s.ends {
			s.ends, s.last = true, last
			close(s.ending)
			if s.seen.phase == Established {
				s.seen.lasted = max(time.Since(s.seen.since), 1)
			}
			s.seen.asn = 0
			s.limitWrites(cease)
		}
		if s.seen.why.text == "" || s.seen.why.kind == unexplained && why.kind >= detected {
			s.seen.why = why
		}
	})
}

// limitWrites limits all writes to the router from now on, also one that is blocked. The caller holds mu.
func (s *session) limitWrites(timeout time.Duration) {
	if at := time.Now().Add(timeout); s.lastWrite.IsZero() || at.Before(s.lastWrite) {
		s.lastWrite = at
		_ = s.conn.SetWriteDeadline(at) // It may be closed.
	}
}

// close ends the session after all routes were sent, or after 3*cease if the router does not accept them. If the
// session is Established, it sends a Cease, Administrative Shutdown (RFC 9003), with the given text.
func (s *session) close(why string) {
	if s.observed().phase == Established {
		s.change(func() { s.shutdown = administrativeShutdown(why); s.limitWrites(cease) })
	} else {
		s.beginEnd(reason{}, nil)
	}
	timer := time.NewTimer(3 * cease)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.abort(reason{})
	}
}

// abort closes the connection at once, without a NOTIFICATION.
func (s *session) abort(why reason) {
	s.beginEnd(why, nil)
	_ = s.conn.Close() // The router has what it has.
	<-s.done
}

// closeOnPathFailure closes the connection at once, because the path to the router failed. It makes only a brief
// attempt to send the NOTIFICATION.
func (s *session) closeOnPathFailure(r *notificationError) {
	s.beginEnd(r.reason(), r)
	s.change(func() {
		s.lastRead = 0
		s.limitWrites(ceaseTimeout)
		_ = s.conn.SetReadDeadline(time.Now())
	})
	<-s.done
}

// administrativeShutdown returns a Cease with a text for the operator of the router.
func administrativeShutdown(why string) *notificationError {
	r := &notificationError{code: packet.BGP_ERROR_CEASE, subcode: packet.BGP_ERROR_SUB_ADMINISTRATIVE_SHUTDOWN}
	if why != "" {
		r.data = append([]byte{byte(len(why))}, why...)
	}
	r.text = fmt.Sprintf("sent notification: %s", notificationName(r.code, r.subcode))
	return r
}
