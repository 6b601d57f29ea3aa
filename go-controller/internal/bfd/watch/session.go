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

// plain is the target without a zone and without an address in two forms.
func (t Target) plain() Target {
	t.Interface = cmp.Or(t.Interface, t.Peer.Zone(), t.Local.Zone())
	t.Peer, t.Local = t.Peer.Unmap().WithZone(""), t.Local.Unmap().WithZone("")
	return t
}

// sameAs is whether a session with t goes on as one with u.
func (t Target) sameAs(u Target) bool {
	return t.Peer == u.Peer && t.Local == u.Local && t.Interface == u.Interface && t.Settings.Multihop == u.Settings.Multihop
}

// kind of a path; each has a socket that receives.
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

// port is the UDP port of RFC 5881 section 4 or RFC 5883 section 5.
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

// session is one that is watched.
type session struct {
	name string
	// target is what is wanted; leaving, that it ends; replaced, that another has its name.
	target            Target
	leaving, replaced bool

	kind kind
	// since is when the session was asked for.
	since time.Time
	// machine is nil until there are sockets; given is what it was configured with.
	machine *bfd.Session
	given   bfd.Settings
	// end is when a session that is leaving is over.
	end time.Time

	sender
	// retry is when the sender is opened again, of a session that has not sent anything.
	retry time.Time
	// trouble is what keeps packets from being sent; refused why the peer's last one was.
	trouble, refused error
	// told is what was notified last.
	told Session
}

func newSession(name string, t Target) *session {
	now := time.Now()
	return &session{
		name: name, target: t, kind: t.kind(), since: now, sender: sender{fd: -1},
		told: Session{Status: bfd.Status{State: bfd.Down, Since: now}},
	}
}

// attend does what is due now, and returns when there is something to do again.
func (s *session) attend(now time.Time, claimed func(uint16) bool) time.Time {
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
		s.end = now.Add(farewell)
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
		// A session that waits for its peer sends nothing, and so does not learn that the interface is another one by now.
		if !now.Before(s.retry) {
			s.retry = now.Add(retryEvery)
			s.close()
			s.trouble = s.reopen(s.target, s.kind)
		}
		until = earlier(until, s.retry)
	}
	return until
}

// over is whether the session can be forgotten. One that never began has nothing to tell.
func (s *session) over(now time.Time) bool {
	over := s.leaving && (s.machine == nil || !s.end.IsZero() && !now.Before(s.end))
	if over {
		s.close()
	}
	return over
}

// send sends what the machine returned. A packet that can't be sent is lost, as others are on
// the way; the next one has another try, with another socket: the device may be a new one.
func (s *session) send(p bfd.Packet, is bool) {
	if !is {
		return
	}
	if s.fd < 0 {
		s.trouble = s.reopen(s.target, s.kind)
	}
	if s.fd >= 0 {
		s.trouble = s.write(p.Append(nil))
	}
	if s.trouble != nil {
		s.close()
	}
}

// mayBeFrom is whether a datagram came from the peer, as far as its addresses tell.
func (s *session) mayBeFrom(d datagram) bool {
	return d.from == s.target.Peer && (s.device == 0 || d.device == s.device) && (s.target.Local == netip.Addr{} || d.to == s.target.Local)
}

// far is an error if the packet has come too far: RFC 5881 section 5, RFC 5883 section 5.
func (s *session) far(ttl int) error {
	least := 255
	if s.kind&multihop != 0 {
		least = int(s.target.Settings.MinimumTTL)
	}
	if ttl < least {
		return fmt.Errorf("TTL %d, want at least %d", ttl, least)
	}
	return nil
}

// refuse keeps the first reason until a good packet comes.
func (s *session) refuse(err error) {
	if s.refused == nil {
		s.refused = err
	}
}
