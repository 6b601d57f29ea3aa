// SPDX-License-Identifier: Apache-2.0

package bfd_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

func randomSettings(r *rand.Rand) bfd.Settings {
	intervals := []time.Duration{10, 50, 100, 300, 900, 1000, 3000}
	return bfd.Settings{
		Transmit:   intervals[r.IntN(len(intervals))] * time.Millisecond,
		Receive:    intervals[r.IntN(len(intervals))] * time.Millisecond,
		Multiplier: uint8(1 + r.IntN(4)),
	}
}

// With any settings of the two ends, and any changes of them at any time, the session comes up and stays up as long as
// packets arrive. If they do not arrive, each end detects that within its detection time.
func TestNoFlapAndNoMiss(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := newDialogue()
		for _, e := range d.ends {
			e.settings = randomSettings(r)
			d.begin(e)
		}
		d.run(5 * time.Second)
		var since [2]time.Time
		for i, e := range d.ends {
			is := e.session.Status()
			since[i] = is.Since
			if is.State != bfd.Up {
				t.Fatalf("seed %d: %s is %s after 5 s\n%s", seed, e.name, is.State, &d.out)
			}
		}
		for range 6 {
			e := d.ends[r.IntN(2)]
			e.settings = randomSettings(r)
			d.send(e)(e.session.Configure(d.now, e.settings))
			d.run(time.Duration(r.IntN(4000)) * time.Millisecond)
		}
		d.run(15 * time.Second)
		for i, e := range d.ends {
			is, peer := e.session.Status(), d.ends[1-i]
			if is.State != bfd.Up || is.Since != since[i] {
				t.Fatalf("seed %d: %s flapped\n%s", seed, e.name, &d.out)
			}
			if want := max(e.settings.Transmit, peer.settings.Receive); is.Interval != want {
				t.Fatalf("seed %d: %s sends every %v, want %v\n%s", seed, e.name, is.Interval, want, &d.out)
			}
			if want := time.Duration(peer.settings.Multiplier) * max(e.settings.Receive,
				peer.settings.Transmit); is.Detection != want {
				t.Fatalf("seed %d: %s detects within %v, want %v\n%s", seed, e.name, is.Detection, want, &d.out)
			}
		}
		d.ends[0].cut, d.ends[1].cut = true, true
		cut := d.now
		d.run(15 * time.Second)
		for _, e := range d.ends {
			is := e.session.Status()
			// All possible detection times are below 15 s here.
			if is.State != bfd.Down || is.Diagnostic != bfd.DetectionTimeExpired || is.Since.Before(cut) {
				t.Fatalf("seed %d: %s is %+v after the cut\n%s", seed, e.name, is, &d.out)
			}
		}
	}
}

// For all inputs in any order: no packet has both poll and final, a session that is not Up is slow unless its packet
// changes, and the next deadline after Wake is in the future.
func FuzzSession(f *testing.F) {
	f.Add([]byte("\x01\x40\x03\x00\x00\x01\x02\xc0\x03\x01\x05\x06\x07\x08"))
	f.Add([]byte{0, 0, 0, 1, 0xf0, 1, 2, 2, 3, 4, 4, 1, 9, 9, 9})
	f.Fuzz(func(t *testing.T, facts []byte) {
		settings := bfd.Settings{Transmit: 50 * time.Millisecond, Receive: 50 * time.Millisecond, Multiplier: 3}
		s := &suspect{t: t, Session: bfd.New(1, settings, start), now: start}
		for ; len(facts) >= 6; facts = facts[6:] {
			s.pass(units(facts[1]))
			s.face(facts[0], [4]byte(facts[2:6]))
		}
	})
}

func units(n byte) time.Duration { return time.Duration(n) * 10 * time.Millisecond }

type suspect struct {
	*bfd.Session
	t    *testing.T
	now  time.Time
	last bfd.Packet
	sent time.Time
}

// pass advances the time and does what is due until then, with the delays of a busy machine.
func (s *suspect) pass(span time.Duration) {
	s.now = s.now.Add(span)
	if at := s.Deadline(); at.IsZero() || at.After(s.now) {
		return
	}
	s.check(s.Wake(s.now))
	if at := s.Deadline(); !at.IsZero() && !at.After(s.now) {
		s.t.Fatalf("due at %v again after Wake at %v", at, s.now)
	}
}

func (s *suspect) face(kind byte, b [4]byte) {
	switch kind % 5 {
	case 0, 1:
		s.check(s.Receive(s.now, bfd.Packet{
			State: bfd.State(b[0] & 3), Poll: b[0]&4 != 0, Final: b[0]&8 != 0, Demand: b[0]&16 != 0,
			Multiplier: max(b[1], 1), My: 7, Your: 1, Transmit: units(b[2]), Receive: units(b[3]),
		}))
	case 2:
		s.check(s.Configure(s.now, bfd.Settings{Transmit: units(b[0]), Receive: units(b[1]), Multiplier: b[2],
			Passive: b[3]&1 != 0}))
	case 3:
		s.check(s.Disable(s.now))
	case 4:
		s.check(s.Enable(s.now))
	}
}

func (s *suspect) check(p bfd.Packet, send bool) {
	if !send {
		return
	}
	if is := s.Status(); p.Poll && p.Final || p.State != is.State || p.My != 1 || p.Multiplier == 0 {
		s.t.Fatalf("sent %+v in %+v", p, is)
	}
	if p.State != bfd.Up && p.Transmit < time.Second {
		s.t.Fatalf("sent %+v", p)
	}
	final := p.Final
	p.Poll, p.Final = false, false
	if gap := s.now.Sub(s.sent); p == s.last && !final && p.State != bfd.Up && gap < 750*time.Millisecond {
		s.t.Fatalf("sent %+v again after %v", p, gap)
	}
	s.last, s.sent = p, s.now
}

// A peer that is silent or sends Down is a failure, a peer that an administrator disabled is not (RFC 5882 section
// 3.2).
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		says bfd.State
		want uint64
	}{{"silent", bfd.Up, 1}, {"Down", bfd.Down, 1}, {"AdminDown", bfd.AdminDown, 0}} {
		now := time.Unix(0, 0)
		s := bfd.New(1, bfd.Settings{Transmit: time.Second, Receive: time.Second, Multiplier: 3}, now)
		hear := func(state bfd.State) {
			s.Receive(now, bfd.Packet{State: state, Multiplier: 3, My: 2, Your: 1, Transmit: time.Second, Receive: time.Second})
		}
		hear(bfd.Init)
		if is := s.Status(); is.State != bfd.Up || is.Failures != 0 {
			t.Fatalf("%s: %+v at first", c.name, is)
		}
		hear(c.says)
		now = now.Add(time.Minute)
		s.Wake(now)
		if is := s.Status(); is.State != bfd.Down || is.Failures != c.want {
			t.Errorf("%s: %+v, want %d failures", c.name, is, c.want)
		}
	}
}

// A host on the link does not know our discriminator. A peer that has restarted does not know it either, and is noticed
// within the detection time.
func TestPacketsWithoutOurDiscriminatorDoNotEndASession(t *testing.T) {
	d := newDialogue()
	for _, e := range d.ends {
		e.settings = bfd.Settings{Transmit: 100 * time.Millisecond, Receive: 100 * time.Millisecond, Multiplier: 3}
		d.begin(e)
	}
	d.run(5 * time.Second)
	ours := d.ends[0].session
	down := bfd.Packet{State: bfd.Down, My: 0xdeadbeef, Multiplier: 1, Transmit: time.Second}
	guessed := down // as of a router that numbers its sessions
	guessed.My = d.ends[1].session.Discriminator()
	for range 100 {
		for _, p := range []bfd.Packet{down, guessed} {
			if _, send := ours.Receive(d.now, p); send {
				t.Error("a forged packet is answered")
			}
		}
		d.run(10 * time.Millisecond)
	}
	if is := ours.Status(); is.State != bfd.Up || is.Failures != 0 {
		t.Errorf("after forged packets: %s, %d failures", is.State, is.Failures)
	}
	restarted := d.now
	for range 40 { // instead of those of the peer
		d.now = d.now.Add(10 * time.Millisecond)
		ours.Receive(d.now, down)
		ours.Wake(d.now)
	}
	if is := ours.Status(); is.State == bfd.Up || is.Failures != 1 || is.Since.Sub(restarted) > 310*time.Millisecond {
		t.Errorf("after a restart of the peer: %s since %v, %d failures", is.State, is.Since.Sub(restarted), is.Failures)
	}
}

// One packet that any host on the link can send does not silence a session for long that is not Up: a peer in passive
// mode waits for ours.
func TestForgedTimersSilenceNoSessionForLong(t *testing.T) {
	now := time.Unix(1000, 0)
	s := bfd.New(1, bfd.Settings{Transmit: 300 * time.Millisecond, Receive: 300 * time.Millisecond, Multiplier: 3}, now)
	s.Receive(now, bfd.Packet{State: bfd.Down, My: 0xdeadbeef, Multiplier: 255, Transmit: 71 * time.Minute})
	if at := s.Deadline(); at.IsZero() || at.After(now.Add(10*time.Second)) {
		t.Fatalf("the packet counts until %v, received %v", at, now)
	}
	now = now.Add(10 * time.Second)
	if p, send := s.Wake(now); !send || p.State != bfd.Down || p.Your != 0 {
		t.Errorf("10 s later, sent is %+v, %v", p, send)
	}
}
