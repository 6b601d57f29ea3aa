// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// monitor is BFD that notes which paths it left.
type monitor struct{ left []string }

func (m *monitor) Watch(string, Path)      {}
func (m *monitor) Leave(name string)       { m.left = append(m.left, name) }
func (m *monitor) Session(string) Liveness { return Liveness{} }

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
		p.change(was)
		p.retry, p.damping, p.path = time.Now().Add(time.Hour), damping{short: 5}, &Path{}
		to := was
		c.edit(&to)
		p.change(to)
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
