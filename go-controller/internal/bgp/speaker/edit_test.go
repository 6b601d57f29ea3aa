// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// monitor is BFD that notes which paths it left.
type monitor struct {
	left []string
	is   Liveness
}

func (m *monitor) Watch(string, Path)      {}
func (m *monitor) Leave(name string)       { m.left = append(m.left, name) }
func (m *monitor) Session(string) Liveness { return m.is }

// An edit of a peer without a session takes effect at once, also between two attempts that are far apart. Only one that
// a router takes for a restart keeps BFD.
func TestEditWithoutSessionDialsAtOnce(t *testing.T) {
	was := target{neighbor: victim(), addr: netip.MustParseAddr("192.0.2.2")}
	was.neighbor.GracefulRestart = true
	for what, c := range map[string]struct {
		edit      func(*target)
		now, left bool
	}{
		"nothing":     {func(*target) {}, false, false},
		"connectTime": {func(to *target) { to.neighbor.Connect = time.Minute }, false, false},
		"hold time":   {func(to *target) { to.neighbor.Hold = 3 * time.Second }, true, false},
		"address":     {func(to *target) { to.neighbor.Addr = netip.MustParseAddr("192.0.2.3") }, true, true},
	} {
		m := &monitor{}
		p := newPeer("tor", New(Options{BFD: m}))
		p.log = testLog(t)
		p.change(&bgp.Session{}, was)
		p.retry, p.damping, p.path = time.Now().Add(time.Hour), damping{short: 5}, &Path{}
		to := was
		c.edit(&to)
		p.change(&bgp.Session{}, to)
		if now := p.retry.IsZero() && p.damping == (damping{}); now != c.now || p.target != to {
			t.Errorf("%s: the next attempt is at %s, damping %+v", what, p.retry, p.damping)
		}
		if left := slices.Equal(m.left, []string{"tor"}); left != c.left {
			t.Errorf("%s: BFD has left %v", what, m.left)
		}
	}
}

// A node that drains monitors no peer, also if there is no session to close.
func TestDrainWithoutSessionLeavesBFD(t *testing.T) {
	m := &monitor{}
	p := newPeer("tor", New(Options{BFD: m}))
	p.path = &Path{}
	if p.drain(&bgp.Session{Leaving: true}); !slices.Equal(m.left, []string{"tor"}) {
		t.Errorf("BFD has left %v", m.left)
	}
}

// granted is a Turn that records whether a peer wants it.
type granted struct{ given, wanted bool }

func (g *granted) Take(string) bool { g.wanted = true; return g.given }
func (g *granted) Done(string)      { g.wanted = false }

// bfdEdit is an edit of a session with BFD in a state.
type bfdEdit struct {
	edit     func(*bgp.Session)
	graceful bool
	state    string
	// closes means that the session is opened again.
	closes bool
}

// Routers close a session when BFD with it ends. So the node closes it first, in its turn, and opens it again when the
// router has noticed the end of BFD. Until then, BFD goes on. It ends at once if no router can have it up.
func TestEndOfBFDReopensTheSession(t *testing.T) {
	hop := func(s *bgp.Session) { s.BFD = &bgp.BFD{Transmit: time.Second, Multihop: true} }
	for name, c := range map[string]bfdEdit{
		"removed":              {func(s *bgp.Session) { s.BFD = nil }, true, "Up", true},
		"without a restart":    {func(s *bgp.Session) { s.BFD = nil }, false, "Up", true},
		"not up here yet":      {func(s *bgp.Session) { s.BFD = nil }, true, "Init", true},
		"down":                 {func(s *bgp.Session) { s.BFD = nil }, true, "Down", false},
		"beyond the link":      {hop, true, "Up", true},
		"other times":          {func(s *bgp.Session) { s.BFD = &bgp.BFD{Transmit: time.Minute} }, true, "Up", false},
		"with another edit":    {func(s *bgp.Session) { s.BFD, s.Neighbor.Hold = nil, 0 }, true, "Up", true},
		"beyond it, with hops": {func(s *bgp.Session) { hop(s); s.Neighbor.TTL = 2 }, true, "Up", true},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, c.run) })
	}
}

func (c bfdEdit) run(t *testing.T) {
	m, turn := &monitor{is: Liveness{State: c.state, Up: c.state == "Up"}}, &granted{}
	p := newPeer("tor", New(Options{BFD: m, Turn: turn}))
	p.log = testLog(t)
	was := &bgp.Session{Peer: "tor", Neighbor: victim(), BFD: &bgp.BFD{Transmit: time.Second}}
	was.Neighbor.Addr, was.Neighbor.GracefulRestart = netip.MustParseAddr("192.0.2.2"), c.graceful
	s, router, _ := establish(t, was.Neighbor, nil, openOf(t, 64512, 90, "192.0.2.2", both()...))
	defer router.Close()
	s.target = target{neighbor: was.Neighbor, addr: was.Neighbor.Addr}
	p.setSession(s)
	p.dialed, p.target = true, s.target
	p.step(t.Context(), was)
	want := *was
	c.edit(&want)
	for range 2 {
		p.step(t.Context(), &want)
	}
	if p.session == nil || turn.wanted != c.closes || p.outdated != c.closes {
		t.Fatalf("before the turn: session %v, turn wanted: %t, outdated: %t", p.session, turn.wanted, p.outdated)
	}
	if ends := !c.closes && want.BFD == nil; (m.left != nil) != ends {
		t.Fatalf("before the turn: BFD has left %v", m.left)
	}
	if c.closes {
		turn.given = true
		c.inTurn(t, p, &want, m)
	}
	if turn.wanted != c.closes {
		t.Errorf("before the session is there again: turn wanted: %t", turn.wanted)
	}
}

// inTurn lets a peer close its session.
func (c bfdEdit) inTurn(t *testing.T, p *peer, want *bgp.Session, m *monitor) {
	t.Helper()
	wait := p.step(t.Context(), want)
	if p.session != nil || p.outdated || (m.left == nil) != c.graceful {
		t.Fatalf("in the turn: session %v, outdated: %t, BFD has left %v", p.session, p.outdated, m.left)
	}
	if c.graceful { // The router must take the end of the session for a restart.
		<-time.After(wait)
		wait = p.step(t.Context(), want)
	}
	if !slices.Equal(m.left, []string{"tor"}) || wait != redialAfterBFD || p.attempt != nil {
		t.Errorf("after the end of BFD: due in %s, BFD has left %v, attempt %v", wait, m.left, p.attempt)
	}
	other := *want
	other.Neighbor.Hold = 42 * time.Second
	if wait = p.step(t.Context(), &other); wait != redialAfterBFD || p.attempt != nil {
		t.Errorf("after another edit: due in %s, attempt %v", wait, p.attempt)
	}
}
