// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// refreshPause is the minimum interval between two answers to ROUTE-REFRESH requests. Each of them makes us send all
// routes of a family.
const refreshPause = 500 * time.Millisecond

// lateRead is how long a read may take that begins only when the hold timer has expired.
const lateRead = time.Second

// receive reads messages until the router closes the connection or sends one that is not acceptable.
func (s *session) receive(n bgp.Neighbor) {
	s.setReadDeadline(s.openTimeout)
	f := filter{neighbor: n}
	err := s.listen(&f)
	var r *notificationError
	var said *receivedNotification
	if isTimeout(err) {
		if s.isEnding() {
			return // The wait for the router's last messages is over.
		}
		err = &notificationError{code: packet.BGP_ERROR_HOLD_TIMER_EXPIRED, text: s.silenceMessage(n, &f)}
	}
	switch {
	case errors.As(err, &r):
		why := r.reason()
		if r.code == packet.BGP_ERROR_HOLD_TIMER_EXPIRED && f.stage == beginning {
			why.kind = unreachable
		}
		s.beginEnd(why, r)
	case errors.As(err, &said):
		s.change(func() { s.seen.notifications.received++ })
		s.beginEnd(said.reason(), nil)
	default:
		s.beginEnd(s.closeReason(err), nil)
	}
	// A socket that is closed with unread data resets the connection, and the last messages may be lost.
	s.limitReads()
	_, _ = io.Copy(io.Discard, s.conn)
}

// closeReason returns the reason why the session ends if the connection has failed with an error: the kernel has given
// it up, or the router has closed it and given no reason.
func (s *session) closeReason(err error) reason {
	switch {
	case isAbandoned(err) && s.sendHold > 0:
		return sendHoldExpired(s.sendHold)
	case isAbandoned(err):
		return reason{text: "the connection timed out: the peer acknowledged no data", kind: detected}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepaliveReceived {
		return reason{text: lost, kind: unexplained}
	}
	return reason{text: closed, kind: unexplained}
}

// isTimeout reports whether a deadline of ours has expired.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isAbandoned reports whether the kernel has given up a connection because its peer acknowledged or accepted no data.
// The error is the last ICMP error, if there was one.
func isAbandoned(err error) bool {
	return errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH)
}

func (s *session) isEnding() bool {
	select {
	case <-s.ending:
		return true
	default:
		return false
	}
}

// setReadDeadline limits reads from now on, 0 for no limit, unless the session ends.
func (s *session) setReadDeadline(timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends {
		return
	}
	var at time.Time
	if timeout > 0 {
		at = time.Now().Add(timeout)
	}
	_ = s.conn.SetReadDeadline(at) // If it is closed, the read fails.
}

// limitReads limits the wait for the last messages of the router.
func (s *session) limitReads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetReadDeadline(time.Now().Add(s.lastRead)) // If it is closed, the read fails.
}

// heldReader reads from the router. A read fails if the hold timer has expired: only complete messages restart it.
type heldReader struct {
	session *session
	// expires is the time for which the hold timer is set, zero for never or before the router's OPEN, to which
	// openTimeout applies.
	expires time.Time
	// late means that a read has begun after that.
	late bool
}

// restart restarts the hold timer.
func (r *heldReader) restart(hold time.Duration) {
	r.expires, r.late = time.Time{}, false
	if hold > 0 {
		r.expires = time.Now().Add(hold)
	}
	r.session.setReadDeadline(hold)
}

// Read reads what has arrived. If this process did not run until the hold timer had expired, for example because the
// node was suspended, the router's messages may wait in the kernel: it has one more read to restart the timer.
func (r *heldReader) Read(b []byte) (int, error) {
	if !r.late && !r.expires.IsZero() && !time.Now().Before(r.expires) {
		r.late = true
		r.session.setReadDeadline(lateRead)
	}
	return r.session.conn.Read(b)
}

// listen reads messages, and returns the reason why it ends.
func (s *session) listen(f *filter) error {
	held := &heldReader{session: s}
	in, buf := bufio.NewReader(held), make([]byte, maxMessage)
	for {
		m, err := next(in, buf)
		if err != nil {
			return err
		}
		was := f.stage
		again, err := f.process(m)
		switch {
		case err != nil:
			return err
		case was == beginning:
			s.change(func() {
				s.openReceived = true
				s.seen.asn, s.seen.families, s.hold = f.asn, f.families, f.hold
				s.routes.families, s.routes.fourOctet, s.routes.extendedHop = f.families, f.fourOctet, f.extendedHop
			})
		case was == opened:
			s.change(func() { s.keepaliveReceived = true })
		case again != Families{}:
			s.requested(again)
		}
		if m[typeAt] != packet.BGP_MSG_ROUTE_REFRESH { // RFC 4271 section 8.2.2: KEEPALIVE and UPDATE
			held.restart(s.allowedSilence(f))
		}
	}
}

// allowedSilence returns how long the router may be silent after a message; 0 for no limit. Without a hold time (RFC
// 4271 section 4.2), only its first KEEPALIVE is awaited.
func (s *session) allowedSilence(f *filter) time.Duration {
	if f.hold == 0 && f.stage == opened {
		return s.openTimeout
	}
	return f.hold
}

// next reads a message into a buffer that has room for the longest one.
func next(in *bufio.Reader, buf []byte) ([]byte, error) {
	if _, err := io.ReadFull(in, buf[:headerLength]); err != nil {
		return nil, err
	}
	length, r := messageLength(buf)
	if r != nil {
		return nil, r
	}
	if _, err := io.ReadFull(in, buf[headerLength:length]); err != nil {
		return nil, err
	}
	return buf[:length], nil
}

// silenceMessage returns the error for a router that accepted the connection and is silent.
func (s *session) silenceMessage(n bgp.Neighbor, f *filter) string {
	switch {
	case f.stage == opened && f.hold == 0:
		return fmt.Sprintf("the peer sent an OPEN message without a hold time, and no KEEPALIVE within %s", s.openTimeout)
	case f.stage > beginning:
		return fmt.Sprintf("hold timer expired: the peer sent no KEEPALIVE or UPDATE for %s", f.hold)
	}
	text := fmt.Sprintf("the peer accepted the connection and sent no OPEN message within %s", s.openTimeout)
	if n.SecurityHops > 0 {
		text += fmt.Sprintf(": does it have TTL security too, and is it within %s?", world.Count(n.SecurityHops, "hop"))
	}
	return text
}
