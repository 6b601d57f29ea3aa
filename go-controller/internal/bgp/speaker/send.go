// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"time"
)

const (
	// keepalives is the number of KEEPALIVEs per hold time (RFC 4271 section 4.4).
	keepalives = 3
	// batch limits the bytes that are written to a router at once.
	batch = 1 << 16
)

// send writes our messages until the session ends, and then the last NOTIFICATION.
func (s *session) send(open []byte) {
	why, intact := s.writeMessages(open)
	s.mu.Lock()
	last := s.shutdown
	s.mu.Unlock()
	s.beginEnd(why, last)
	s.mu.Lock()
	last = s.last
	s.mu.Unlock()
	if intact && last != nil && last.notification() != nil {
		if _, ok := s.write(last.notification()); ok { // It may not reach the router.
			s.change(func() { s.seen.notifications.sent++ })
		}
	}
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	s.limitReads()
}

// writeMessages writes our messages except for the last NOTIFICATION. It returns why it ends, the zero reason if that
// is known, and false if no message can follow.
func (s *session) writeMessages(open []byte) (why reason, intact bool) {
	if why, ok := s.write(open); !ok {
		return why, false
	}
	s.change(func() { s.openSent = true })
	timer := time.NewTimer(0)
	defer timer.Stop()
	var wrote time.Time
	for {
		select {
		case <-s.ending:
			return reason{}, true
		case <-s.changed:
		case <-timer.C:
		}
		for {
			out, done := s.nextMessages(wrote)
			if len(out) == 0 {
				break
			}
			if why, ok := s.write(out); !ok {
				return why, false
			}
			wrote = time.Now()
			done()
		}
		if last := s.finished(); last != nil {
			return last.reason(), true
		}
		timer.Stop()
		if interval := s.interval(); interval > 0 && !wrote.IsZero() {
			timer.Reset(time.Until(wrote.Add(interval)))
		}
	}
}

// nextMessages returns the messages to write next, none if there are none. done is called when they are written.
func (s *session) nextMessages(wrote time.Time) (out []byte, done func()) {
	interval := s.interval()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ends || !s.openReceived:
		return nil, nil
	case !s.keepaliveSent:
		return keepalive(), func() { s.change(func() { s.keepaliveSent = true }) }
	case s.seen.phase == Established && !s.routes.idle():
		return s.routes.next(), s.sent
	case interval > 0 && time.Since(wrote) >= interval:
		return keepalive(), func() {}
	}
	return nil, nil
}

// finished returns the NOTIFICATION that ends a session that is to be closed, once there is nothing else to send; nil
// before.
func (s *session) finished() *notificationError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutdown
}

// sent counts the routes that were written, and reports when these were all.
func (s *session) sent() {
	s.mu.Lock()
	s.routes.written()
	idle := s.routes.idle()
	s.mu.Unlock()
	if idle {
		s.wake()
	}
}

// interval returns the interval between two KEEPALIVEs: the configured one, but at most a third of the negotiated hold
// time; 0 for none (RFC 4271 section 4.4).
func (s *session) interval() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if third := s.hold / keepalives; s.keepalive == 0 || third < s.keepalive {
		return third
	}
	return s.keepalive
}

// write writes complete messages to the router. If that fails, no other message can follow. Then it returns false, and
// the reason unless the session ends.
func (s *session) write(out []byte) (reason, bool) {
	s.mu.Lock()
	hold, deadline := s.hold, s.lastWrite
	if deadline.IsZero() && hold > 0 {
		deadline = time.Now().Add(hold)
	}
	err := s.conn.SetWriteDeadline(deadline) // With the lock held, so that it does not replace that of limitWrites.
	s.mu.Unlock()
	if err == nil {
		_, err = s.conn.Write(out)
	}
	switch {
	case err == nil:
		return reason{}, true
	case !isTimeout(err):
		return s.closeReason(err), false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ends:
		return reason{}, false
	case !s.lastWrite.IsZero():
		return reason{text: "the peer accepted no data before the session was closed", kind: detected}, false
	}
	return sendHoldExpired(hold), false
}

// sendHoldExpired returns the reason if the router accepted no data for a hold time. The NOTIFICATION of RFC 9687 can't
// be sent: it would wait behind that data.
func sendHoldExpired(hold time.Duration) reason {
	return reason{kind: detected,
		text: fmt.Sprintf("send hold timer expired: the peer accepted no data for the hold time of %s", hold)}
}
