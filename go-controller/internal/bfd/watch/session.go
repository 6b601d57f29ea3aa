// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

// plain returns the target with normalized addresses: the zone is moved to Interface, and IPv4-mapped addresses are
// unmapped.
func (t Target) plain() Target {
	t.Interface = cmp.Or(t.Interface, t.Peer.Zone(), t.Local.Zone())
	t.Peer, t.Local = t.Peer.Unmap().WithZone(""), t.Local.Unmap().WithZone("")
	return t
}

// sameAs reports whether a session with t can continue as one with u.
func (t Target) sameAs(u Target) bool {
	return t.Peer == u.Peer && t.Local == u.Local && t.Interface == u.Interface &&
		t.Settings.Multihop == u.Settings.Multihop
}

// kind is the kind of a path. Each kind has its own receiving socket.
type kind int

const (
	kinds = 4
	// The kinds are sums of these.
	overIPv6 kind = 1
	multihop kind = 2
)

func (t Target) kind() kind {
	var k kind
	if t.Peer.Is6() {
		k += overIPv6
	}
	if t.Settings.Multihop {
		k += multihop
	}
	return k
}

// port returns the UDP port of RFC 5881 section 4 or RFC 5883 section 5.
func (k kind) port() uint16 {
	if k&multihop != 0 {
		return 4784
	}
	return 3784
}

func (k kind) String() string {
	if k&overIPv6 != 0 {
		return "IPv6"
	}
	return "IPv4"
}

// session is a monitored session.
type session struct {
	name string
	// target is the wanted target. leaving means that the session must end, replaced that another session has its name.
	target            Target
	leaving, replaced bool

	kind kind
	// since is when the session was requested.
	since time.Time
	// machine is nil until there are sockets. given is its configuration.
	machine *bfd.Session
	given   bfd.Settings
	// end is when a leaving session is removed.
	end time.Time

	sender
	// retry is when the sender of a session that has not sent anything is opened again.
	retry time.Time
	// trouble is the error that prevents sending. refused is the reason why the peer's last packet was rejected.
	trouble, refused error
	// notified is the last state that was reported.
	notified Session
}

func newSession(name string, t Target) *session {
	now := time.Now()
	return &session{
		name: name, target: t, kind: t.kind(), since: now,
		notified: Session{Status: bfd.Status{State: bfd.Down, Since: now}},
	}
}

// step does what is due now, and returns when it must be called again.
func (s *session) step(now time.Time, n network, claimed func(uint16) bool) time.Time {
	s.network = n
	if s.machine == nil {
		if now.Before(s.retry) {
			return s.retry
		}
		s.retry = now.Add(retryEvery)
		if s.trouble = s.open(s.target, s.kind, claimed); s.trouble != nil {
			return s.retry
		}
		s.given = s.target.Settings
		s.machine = bfd.New(1+rand.Uint32N(1<<32-1), s.given, s.since)
	}
	if s.given != s.target.Settings {
		s.given = s.target.Settings
		s.send(s.machine.Configure(now, s.given))
	}
	switch disabled := s.machine.Status().State == bfd.AdminDown; {
	case s.leaving && !disabled:
		s.end = now.Add(adminDownPeriod)
		s.send(s.machine.Disable(now))
	case !s.leaving && disabled:
		s.end = time.Time{}
		s.send(s.machine.Enable(now))
	}
	if at := s.machine.Deadline(); !at.IsZero() && !at.After(now) {
		s.send(s.machine.Wake(now))
	}
	until := earlier(s.machine.Deadline(), s.end)
	if s.machine.Deadline().IsZero() && s.target.Interface != "" {
		// A session that waits for its peer sends nothing, and so does not detect that the interface was replaced.
		if !now.Before(s.retry) {
			s.retry = now.Add(retryEvery)
			s.close()
			s.trouble = s.reopen(s.target, s.kind)
		}
		until = earlier(until, s.retry)
	}
	return until
}

// isOver reports whether the session can be removed. A session that never started has no peer to inform.
func (s *session) isOver(now time.Time) bool {
	over := s.leaving && (s.machine == nil || !s.end.IsZero() && !now.Before(s.end))
	if over {
		s.close()
	}
	return over
}

// send sends a packet returned by the state machine. A packet that can't be sent is lost, like one that the network
// drops. The next packet is sent with a new socket, because the device may have been replaced.
func (s *session) send(p bfd.Packet, is bool) {
	if !is {
		return
	}
	if s.way == nil {
		s.trouble = s.reopen(s.target, s.kind)
	}
	if s.way != nil {
		s.trouble = s.way.write(p.Append(nil))
	}
	if s.trouble != nil {
		s.close()
	}
}

// matches reports whether the addresses of a datagram match the peer.
func (s *session) matches(d datagram) bool {
	return d.from == s.target.Peer && (s.device == 0 || d.device == s.device) &&
		(s.target.Local == netip.Addr{} || d.to == s.target.Local)
}

// remote returns the other end as it is now.
func (s *session) remote() remote {
	r := remote{addr: s.target.Peer, minTTL: s.minTTL()}
	if s.machine != nil {
		r.discriminator, r.isUp = s.machine.Discriminator(), s.machine.Status().State == bfd.Up
	}
	return r
}

// minTTL returns the TTL that packets must have at least: RFC 5881 section 5, RFC 5883 section 5.
func (s *session) minTTL() uint8 {
	if s.kind&multihop != 0 {
		return s.target.Settings.MinimumTTL
	}
	return mostHops
}

// checkTTL returns an error if the packet came from too far away.
func (s *session) checkTTL(ttl int) error {
	least := int(s.minTTL())
	if ttl < least {
		return fmt.Errorf("TTL %d, want at least %d", ttl, least)
	}
	return nil
}

// refuse records the first reason until a valid packet is received.
func (s *session) refuse(err error) {
	if s.refused == nil {
		s.refused = err
	}
}
