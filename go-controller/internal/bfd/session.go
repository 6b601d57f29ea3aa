// SPDX-License-Identifier: Apache-2.0

package bfd

import (
	"math/rand/v2"
	"time"
)

// slow is the least interval of a session that is not Up (RFC 5880 section 6.8.3).
const slow = time.Second

// Session is one end of a session: the state variables of RFC 5880 section 6.8.1, and what was
// sent and heard last.
type Session struct {
	settings Settings
	my       uint32
	random   *rand.Rand

	state      State
	diagnostic Diagnostic
	since      time.Time
	failures   uint64

	remote remote
	// heard is when the last packet came; it counts while the remote is known.
	heard time.Time

	transmit, receive interval
	poll              poll

	// last is the packet sent last, without its poll and final bits, and sent is when that was.
	// The next one is due after this share of the interval: its jitter.
	last  Packet
	sent  time.Time
	share float64
}

// remote is what the peer's last packet said.
type remote struct {
	discriminator     uint32
	state             State
	demand            bool
	multiplier        uint8
	transmit, receive time.Duration
}

// nobody is the remote as long as it is not known.
func nobody() remote { return remote{state: Down, receive: time.Microsecond} }

func (r remote) known() bool { return r.discriminator != 0 }

// interval is one that a poll sequence changes: told the peer in each packet, and used here.
type interval struct{ told, used time.Duration }

// poll is how far a poll sequence is (RFC 5880 section 6.5).
type poll uint8

const (
	settled poll = iota
	asked
	// outdated: what was asked has changed since, so that the answer is followed by another poll.
	outdated
)

// New returns a session in state Down whose first packet is due now. The discriminator is not
// 0 and no other session's of this system.
func New(discriminator uint32, settings Settings, now time.Time) *Session {
	s := &Session{
		my: discriminator, settings: settings.bounded(), random: rand.New(rand.NewPCG(uint64(discriminator), 0)),
		state: Down, since: now, remote: nobody(),
	}
	s.retime()
	s.sent, s.share = now.Add(-s.interval()), 1
	return s
}

// Discriminator that the peer's packets have as Your.
func (s *Session) Discriminator() uint32 { return s.my }

// Status of the session.
func (s *Session) Status() Status {
	return Status{s.state, s.diagnostic, s.since, s.interval(), s.detection(), s.failures}
}

// Hear takes a packet that came for this session, as section 6.8.6 does after the session
// was found. What it returns is to be sent now if send is true; so for the others below.
func (s *Session) Hear(now time.Time, p Packet) (answer Packet, send bool) {
	s.heard = now
	s.remote = remote{p.My, p.State, p.Demand, p.Multiplier, p.Transmit, p.Receive}
	if p.Final {
		s.answered()
	}
	switch {
	case s.state == AdminDown:
		return s.speak(now, false)
	case p.State == AdminDown && s.state != Down:
		s.become(now, Down, NeighborSaidDown)
	case s.state == Down && p.State == Down:
		s.become(now, Init, s.diagnostic)
	case s.state == Down && p.State == Init, s.state == Init && (p.State == Init || p.State == Up):
		s.become(now, Up, NoDiagnostic)
	case s.state == Up && p.State == Down:
		s.become(now, Down, NeighborSaidDown)
	}
	return s.speak(now, p.Poll)
}

// Wake does what is due: the next packet, or giving up a peer that is silent.
func (s *Session) Wake(now time.Time) (p Packet, send bool) {
	if s.remote.known() && !now.Before(s.heard.Add(s.detection())) {
		s.remote, s.poll = nobody(), settled
		if s.state == Init || s.state == Up {
			s.become(now, Down, DetectionTimeExpired)
		}
	}
	return s.speak(now, false)
}

// Deadline is when Wake has something to do; the zero time for not before the next packet.
func (s *Session) Deadline() time.Time {
	var at time.Time
	if s.remote.known() {
		at = s.heard.Add(s.detection())
	}
	if next := s.next(); !s.silent() && (at.IsZero() || next.Before(at)) {
		at = next
	}
	return at
}

// Configure changes the settings; the peer learns of new intervals by a poll sequence.
func (s *Session) Configure(now time.Time, settings Settings) (p Packet, send bool) {
	s.settings = settings.bounded()
	s.retime()
	return s.speak(now, false)
}

// Disable holds the session in AdminDown (section 6.8.16) until Enable.
func (s *Session) Disable(now time.Time) (p Packet, send bool) {
	if s.state != AdminDown {
		s.become(now, AdminDown, AdministrativelyDown)
	}
	return s.speak(now, false)
}

// Enable undoes Disable.
func (s *Session) Enable(now time.Time) (p Packet, send bool) {
	if s.state == AdminDown {
		s.become(now, Down, NoDiagnostic)
	}
	return s.speak(now, false)
}

func (s *Session) become(now time.Time, state State, why Diagnostic) {
	if s.state == Up && state == Down && (why != NeighborSaidDown || s.remote.state != AdminDown) {
		s.failures++
	}
	s.state, s.diagnostic, s.since = state, why, now
	s.retime()
}

// retime tells the peer the intervals that belong to the settings and the state (section 6.8.3).
func (s *Session) retime() {
	transmit, receive := s.settings.Transmit, s.settings.Receive
	if s.state != Up {
		transmit = max(transmit, slow)
	}
	if s.remote.known() && (transmit != s.transmit.told || receive != s.receive.told) {
		if s.poll == settled {
			s.poll = asked
		} else {
			s.poll = outdated
		}
	}
	s.transmit.told, s.receive.told = transmit, receive
	if s.state == Up && s.poll != settled {
		s.transmit.used = min(s.transmit.used, transmit)
		s.receive.used = max(s.receive.used, receive)
		return
	}
	s.settle()
}

// answered ends a poll sequence.
func (s *Session) answered() {
	switch s.poll {
	case settled:
	case asked:
		s.poll = settled
		s.settle()
	case outdated:
		s.poll = asked
	}
}

func (s *Session) settle() {
	s.transmit.used, s.receive.used = s.transmit.told, s.receive.told
}

// interval between our packets before jitter (section 6.8.2).
func (s *Session) interval() time.Duration { return max(s.transmit.used, s.remote.receive) }

// detection is how long the peer may be silent (section 6.8.4).
func (s *Session) detection() time.Duration {
	return time.Duration(s.remote.multiplier) * max(s.receive.used, s.remote.transmit)
}

// next is when the next periodic packet is due.
func (s *Session) next() time.Time {
	return s.sent.Add(time.Duration(float64(s.interval()) * s.share))
}

// silent is whether there are no packets but answers (section 6.8.7).
func (s *Session) silent() bool {
	demand := s.remote.demand && s.state == Up && s.remote.state == Up && s.poll == settled
	return s.settings.Passive && !s.remote.known() || s.remote.receive == 0 || demand
}

// speak returns the packet to send now, if there is one.
func (s *Session) speak(now time.Time, final bool) (Packet, bool) {
	p := Packet{
		State: s.state, Diagnostic: s.diagnostic, Multiplier: s.settings.Multiplier,
		My: s.my, Your: s.remote.discriminator, Transmit: s.transmit.told, Receive: s.receive.told,
	}
	if !final && (s.silent() || p == s.last && now.Before(s.next())) {
		return Packet{}, false
	}
	// Section 6.8.7: 75 to 100 % of the interval, and 75 to 90 % if a single packet counts.
	most := 1.0
	if s.settings.Multiplier == 1 {
		most = 0.9
	}
	s.last, s.sent, s.share = p, now, 0.75+(most-0.75)*s.random.Float64()
	p.Final, p.Poll = final, !final && s.poll != settled
	return p, true
}
