// SPDX-License-Identifier: Apache-2.0

package bfd

import (
	"math/rand/v2"
	"time"
)

// slow is the minimum interval of a session that is not Up (RFC 5880 section 6.8.3).
const slow = time.Second

// maxDetectionBeforeUp limits the detection time of a session that is not Up. Until then any host on the link can send
// the packet that determines it. An honest peer with a longer interval sends each change of its state at once (section
// 6.8.7), so the session still comes up.
const maxDetectionBeforeUp = 10 * time.Second

// Session is one end of a session: the state variables of RFC 5880 section 6.8.1, and the last packets sent and
// received.
type Session struct {
	settings Settings
	my       uint32
	random   *rand.Rand

	state      State
	diagnostic Diagnostic
	since      time.Time
	failures   uint64

	remote remote
	// received is when the last packet was received. It is valid while the remote is known.
	received time.Time

	transmit, receive interval
	poll              poll

	// last is the packet sent last, without its poll and final bits, and sent is when it was sent. The next packet is
	// due after this share of the interval, which is its jitter.
	last  Packet
	sent  time.Time
	share float64
}

// remote is the content of the peer's last packet.
type remote struct {
	discriminator     uint32
	state             State
	demand            bool
	multiplier        uint8
	transmit, receive time.Duration
}

// unknownRemote is the value of remote before the first packet of the peer.
func unknownRemote() remote { return remote{state: Down, receive: time.Microsecond} }

func (r remote) known() bool { return r.discriminator != 0 }

// interval is an interval that a poll sequence changes: the value sent to the peer in each packet, and the value in
// use.
type interval struct{ sent, used time.Duration }

// poll is the progress of a poll sequence (RFC 5880 section 6.5).
type poll uint8

const (
	settled poll = iota
	pollSent
	// outdated means that the values have changed since the poll was sent, so that the answer is followed by another
	// poll.
	outdated
)

// New returns a session in state Down whose first packet is due now. The discriminator must not be 0 and must be unique
// among the sessions of this system.
func New(discriminator uint32, settings Settings, now time.Time) *Session {
	s := &Session{
		my: discriminator, settings: settings.bounded(), random: rand.New(rand.NewPCG(uint64(discriminator), 0)),
		state: Down, since: now, remote: unknownRemote(),
	}
	s.updateIntervals()
	s.sent, s.share = now.Add(-s.interval()), 1
	return s
}

// Discriminator returns the value of Your in the peer's packets.
func (s *Session) Discriminator() uint32 { return s.my }

// Status returns the state of the session.
func (s *Session) Status() Status {
	return Status{s.state, s.diagnostic, s.since, s.interval(), s.detection(), s.failures}
}

// Receive processes a packet for this session, as in section 6.8.6 after the session was found. If send is true, the
// caller must send the returned packet now. The same applies to the methods below.
//
// While the session is Up, a packet without our discriminator does not count: any host on the link can send one from
// the peer's address. A peer that has restarted, or that receives nothing from us, does not send ours, so the session
// ends within the detection time.
func (s *Session) Receive(now time.Time, p Packet) (answer Packet, send bool) {
	if s.state == Up && p.Your == 0 {
		return Packet{}, false
	}
	s.received = now
	s.remote = remote{p.My, p.State, p.Demand, p.Multiplier, p.Transmit, p.Receive}
	if p.Final {
		s.endPoll()
	}
	switch {
	case s.state == AdminDown:
		return s.nextPacket(now, false)
	case p.State == AdminDown && s.state != Down:
		s.setState(now, Down, NeighborSignaledDown)
	case s.state == Down && p.State == Down:
		s.setState(now, Init, s.diagnostic)
	case s.state == Down && p.State == Init, s.state == Init && (p.State == Init || p.State == Up):
		s.setState(now, Up, NoDiagnostic)
	case s.state == Up && p.State == Down:
		s.setState(now, Down, NeighborSignaledDown)
	}
	return s.nextPacket(now, p.Poll)
}

// Wake does what is due: it returns the next packet, or declares a silent peer down.
func (s *Session) Wake(now time.Time) (p Packet, send bool) {
	if s.remote.known() && !now.Before(s.received.Add(s.detection())) {
		s.remote, s.poll = unknownRemote(), settled
		if s.state == Init || s.state == Up {
			s.setState(now, Down, DetectionTimeExpired)
		}
	}
	return s.nextPacket(now, false)
}

// Deadline returns when Wake is due; the zero time if not before the next packet is received.
func (s *Session) Deadline() time.Time {
	var at time.Time
	if s.remote.known() {
		at = s.received.Add(s.detection())
	}
	if next := s.next(); !s.silent() && (at.IsZero() || next.Before(at)) {
		at = next
	}
	return at
}

// Configure changes the settings. The peer is informed of new intervals by a poll sequence.
func (s *Session) Configure(now time.Time, settings Settings) (p Packet, send bool) {
	s.settings = settings.bounded()
	s.updateIntervals()
	return s.nextPacket(now, false)
}

// Disable keeps the session in AdminDown (section 6.8.16) until Enable.
func (s *Session) Disable(now time.Time) (p Packet, send bool) {
	if s.state != AdminDown {
		s.setState(now, AdminDown, AdministrativelyDown)
	}
	return s.nextPacket(now, false)
}

// Enable undoes Disable.
func (s *Session) Enable(now time.Time) (p Packet, send bool) {
	if s.state == AdminDown {
		s.setState(now, Down, NoDiagnostic)
	}
	return s.nextPacket(now, false)
}

func (s *Session) setState(now time.Time, state State, why Diagnostic) {
	if s.state == Up && state == Down && (why != NeighborSignaledDown || s.remote.state != AdminDown) {
		s.failures++
	}
	s.state, s.diagnostic, s.since = state, why, now
	s.updateIntervals()
}

// updateIntervals sets the intervals to send to the peer from the settings and the state (section 6.8.3).
func (s *Session) updateIntervals() {
	transmit, receive := s.settings.Transmit, s.settings.Receive
	if s.state != Up {
		transmit = max(transmit, slow)
	}
	if s.remote.known() && (transmit != s.transmit.sent || receive != s.receive.sent) {
		if s.poll == settled {
			s.poll = pollSent
		} else {
			s.poll = outdated
		}
	}
	s.transmit.sent, s.receive.sent = transmit, receive
	if s.state == Up && s.poll != settled {
		s.transmit.used = min(s.transmit.used, transmit)
		s.receive.used = max(s.receive.used, receive)
		return
	}
	s.settle()
}

// endPoll ends a poll sequence.
func (s *Session) endPoll() {
	switch s.poll {
	case settled:
	case pollSent:
		s.poll = settled
		s.settle()
	case outdated:
		s.poll = pollSent
	}
}

func (s *Session) settle() {
	s.transmit.used, s.receive.used = s.transmit.sent, s.receive.sent
}

// interval returns the interval between our packets before jitter (section 6.8.2).
func (s *Session) interval() time.Duration { return max(s.transmit.used, s.remote.receive) }

// detection returns the detection time: how long the peer may be silent (section 6.8.4). Before the session is Up, the
// peer can't make it longer than the limit.
func (s *Session) detection() time.Duration {
	detection := time.Duration(s.remote.multiplier) * max(s.receive.used, s.remote.transmit)
	if s.state == Up {
		return detection
	}
	return min(detection, max(maxDetectionBeforeUp, time.Duration(s.settings.Multiplier)*s.receive.used))
}

// next returns when the next periodic packet is due.
func (s *Session) next() time.Time {
	return s.sent.Add(time.Duration(float64(s.interval()) * s.share))
}

// silent reports whether no packets are sent except answers (section 6.8.7). No periodic packets may be sent to a peer
// whose Required Min RX Interval is 0, in any state.
func (s *Session) silent() bool {
	demand := s.remote.demand && s.state == Up && s.remote.state == Up && s.poll == settled
	return s.settings.Passive && !s.remote.known() || s.remote.receive == 0 || demand
}

// nextPacket returns the packet to send now, if there is one.
func (s *Session) nextPacket(now time.Time, final bool) (Packet, bool) {
	p := Packet{
		State: s.state, Diagnostic: s.diagnostic, Multiplier: s.settings.Multiplier,
		My: s.my, Your: s.remote.discriminator, Transmit: s.transmit.sent, Receive: s.receive.sent,
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
