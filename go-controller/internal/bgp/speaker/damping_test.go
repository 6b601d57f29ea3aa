// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

func TestDampingDoublesUpToALimit(t *testing.T) {
	const stable = 2 * time.Minute
	var d damping
	if got := d.probation(stable); got != 0 {
		t.Errorf("the first session counts after %s, want at once", got)
	}
	for i, want := range []struct{ delay, probation time.Duration }{
		{5 * time.Second, 10 * time.Second}, {10 * time.Second, 20 * time.Second}, {20 * time.Second, 40 * time.Second},
		{40 * time.Second, 80 * time.Second}, {time.Minute, stable}, {time.Minute, stable},
	} {
		d.ended(stable-1, stable)
		if delay, probation := d.delay(5*time.Second, time.Minute), d.probation(stable); delay != want.delay ||
			probation != want.probation {
			t.Errorf("after %d short sessions: delay %s, probation %s, want %+v", i+1, delay, probation, want)
		}
	}
	if got := d.delay(2*time.Minute, time.Minute); got != 2*time.Minute {
		t.Errorf("the delay is %s, less than connectTime", got)
	}
	if d.ended(stable, stable); d != (damping{}) {
		t.Errorf("after a session that lasted: %+v", d)
	}
}

func TestSessionsLastBeyondTheirHoldTime(t *testing.T) {
	for hold, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 90 * time.Second: 2 * time.Minute,
		65535 * time.Second: 330 * time.Second} {
		if got := stableAfter(bgp.Neighbor{Hold: hold}); got != want {
			t.Errorf("hold time %s: %s, want %s", hold, got, want)
		}
	}
}

// limited is a peer whose router ends each session because of its limit of prefixes.
type limited struct {
	*peer
	want *bgp.Session
}

func newLimited(t *testing.T) *limited {
	l := &limited{newPeer("tor", New(Options{})), &bgp.Session{Neighbor: victim()}}
	l.want.Neighbor.Connect = 5 * time.Second
	l.log = testLog(t)
	return l
}

func (l *limited) establish() State {
	saw := connState{phase: Established, since: time.Now(), local: l.want.Neighbor.RouterID}
	l.session = &session{seen: saw}
	return l.published()
}

func (l *limited) published() State {
	l.publish(l.want)
	return l.State()
}

// lose ends the session, and then a connection that the router closes at once.
func (l *limited) lose() State {
	saw := l.session.seen
	saw.lasted = max(time.Since(saw.since), 1)
	l.sessionEnded(saw, l.want.Neighbor)
	l.recordLoss((&receivedNotification{code: 6, subcode: 1}).reason())
	l.session = nil
	l.recordLoss(reason{text: closed, kind: unexplained})
	return l.published()
}

// The AS number of a router that is refused because of it is known as long as that is the last error.
func TestStateHasTheASNumberThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t)
		refused := &notificationError{code: packet.BGP_ERROR_OPEN_MESSAGE_ERROR, text: "another AS number", asn: 65000}
		l.recordLoss(refused.reason())
		if s := l.published(); s.PeerASN != 65000 || s.LastError != refused.text {
			t.Errorf("after an OPEN that is refused: %+v", s)
		}
		l.recordLoss(reason{text: closed, kind: unexplained})
		if s := l.published(); s.PeerASN != 65000 || s.LastError != refused.text {
			t.Errorf("after a connection that the router has closed: %+v", s)
		}
		l.recordLoss(reason{text: "BFD is down", kind: detected})
		if s := l.published(); s.PeerASN != 0 {
			t.Errorf("after another error: %+v", s)
		}
	})
}

func TestSessionsThatDoNotLastCountAsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t)
		if s := l.establish(); s.Damped || s.LastError != "" {
			t.Errorf("the first session: %+v", s)
		}
		first := l.lose()
		if !first.Damped || !strings.Contains(first.LastError, "maximum number of prefixes reached); the last session "+
			"ended within 2m0s") || !strings.Contains(first.LastError, "until it has lasted, at first for 10s") {
			t.Fatalf("after the first session: %+v", first)
		}
		for range 4 {
			if s := l.establish(); !s.Damped || s.Phase != Established || s.LastError != first.LastError {
				t.Errorf("a session after it: %+v, want the error %q", s, first.LastError)
			}
			<-time.After(time.Second)
			if s := l.lose(); !s.Damped || s.LastError != first.LastError {
				t.Errorf("after it: %+v, want the error %q", s, first.LastError)
			}
		}
		if wait := time.Until(l.retry); wait < maxBackoff/2 || wait > maxBackoff {
			t.Errorf("the next attempt is in %s", wait)
		}
		l.establish()
		_, left := l.damped(l.want.Neighbor)
		<-time.After(left - 1)
		if s := l.published(); !s.Damped {
			t.Errorf("it counts before %s: %+v", left, s)
		}
		<-time.After(1)
		if s := l.published(); s.Damped {
			t.Errorf("it does not count after %s: %+v", left, s)
		}
		<-time.After(stableAfter(l.want.Neighbor))
		if s := l.lose(); s.Damped || time.Until(l.retry) > 0 {
			t.Errorf("after a session that lasted: %+v, the next attempt is at %s", s, l.retry)
		}
	})
}

// A node that drains reports the sessions that it has: its routes must not be taken for withdrawn.
func TestDrainingSessionIsNotDamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t)
		l.establish()
		l.lose()
		l.want.Leaving = true
		if s := l.establish(); s.Damped {
			t.Errorf("state %+v", s)
		}
	})
}

func TestNothingFromBeforeALongSessionReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t)
		l.establish()
		l.lose()
		for _, c := range []struct {
			lasted time.Duration
			want   State
		}{
			{stableAfter(l.want.Neighbor) - 1, State{Damped: true, LastError: l.State().LastError}},
			{stableAfter(l.want.Neighbor), State{}},
		} {
			l.establish()
			<-time.After(c.lasted)
			l.clearFailures(l.session.observed(), l.want.Neighbor)
			l.session = nil
			if s := l.published(); s.Damped != c.want.Damped || s.LastError != c.want.LastError {
				t.Errorf("after a session of %s: %+v, want %+v", c.lasted, s, c.want)
			}
		}
		// What ended the session itself is recorded before, and remains.
		l.establish()
		<-time.After(stableAfter(l.want.Neighbor))
		l.recordLoss(bfdDown().reason())
		l.clearFailures(l.session.observed(), l.want.Neighbor)
		l.session = nil
		if s := l.published(); s.LastError == "" {
			t.Errorf("the reason for the end of the session is missing: %+v", s)
		}
	})
}

// flapping is a BFD session that goes down and up again whenever it is asked to.
type flapping struct {
	mu sync.Mutex
	Liveness
}

func (*flapping) Watch(string, Path) {}
func (*flapping) Leave(string)       {}
func (f *flapping) Session(string) Liveness {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Liveness
}

func (f *flapping) change() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Up = !f.Up; !f.Up {
		f.Failures++
	}
}

// BFD that goes down and up again and again does not make a peer whose sessions do not last be dialed each time.
func TestBFDDoesNotBypassDamping(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Millisecond, 100 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := &flapping{Liveness: Liveness{Up: true}}
			p, n := newPeer("tor", New(Options{BFD: b})), victim()
			p.log, p.path, n.Connect = testLog(t), &Path{}, 5*time.Second
			const lasts = 10 * time.Minute
			dials := 0
			for start := time.Now(); time.Since(start) < lasts; <-time.After(every) {
				b.change()
				p.handleBFD(n)
				if !time.Now().Before(p.retry) { // The router ends the session at once.
					dials++
					p.sessionEnded(connState{lasted: time.Millisecond}, n)
				}
			}
			if most := 30; dials > most || dials < 10 {
				t.Errorf("a change every %s: %d dials in %s, want %d at most", every, dials, lasts, most)
			}
		})
	}
}

// BFD that goes down in each session, and up again, ends few of them. The path may really have failed, so that the
// first two attempts after a session that lasted are not delayed.
func TestSessionsThatBFDEndsAreDamped(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Millisecond, 100 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := &flapping{Liveness: Liveness{Up: true}}
			p, n := newPeer("tor", New(Options{BFD: b})), victim()
			p.log, p.path, p.lastLiveness, n.Connect = testLog(t), &Path{}, b.Liveness, 5*time.Second
			open := func() {
				p.session, _, _ = establish(t, n, nil, openOf(t, 64512, 90, "192.0.2.2"))
				p.pathFailed = false // as in startBFD
			}
			open()
			<-time.After(stableAfter(n))
			const lasts = 10 * time.Minute
			sessions, lost := 0, time.Time{}
			for start := time.Now(); time.Since(start) < lasts; <-time.After(every) {
				b.change()
				p.handleBFD(n)
				if p.session == nil && lost.IsZero() {
					lost = time.Now()
				}
				if p.session != nil || time.Now().Before(p.retry) {
					continue
				}
				if wait := time.Since(lost); sessions < 2 && wait > maxRetryAfterBFD+every {
					t.Errorf("a change every %s: attempt %d is due after %s", every, sessions+1, wait)
				}
				sessions, lost = sessions+1, time.Time{}
				open()
			}
			if most := 30; sessions > most || sessions < 10 {
				t.Errorf("a change every %s: %d sessions in %s, want %d at most", every, sessions, lasts, most)
			}
		})
	}
}

// A path that is back is used at once, and also if that was so a moment ago.
func TestPathThatIsBackIsUsedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &flapping{}
		p, n := newPeer("tor", New(Options{BFD: b})), victim()
		p.log, p.path, n.Connect = testLog(t), &Path{}, time.Hour
		p.pathFailed = true
		for i, want := range []time.Duration{0, maxRetryAfterBFD, maxRetryAfterBFD} {
			p.retry = time.Now().Add(time.Hour)
			b.change()
			p.handleBFD(n)
			if wait := max(time.Until(p.retry), 0); wait != want {
				t.Errorf("return %d: the next attempt is in %s, want %s", i, wait, want)
			}
			b.change()
			p.handleBFD(n)
		}
	})
}
