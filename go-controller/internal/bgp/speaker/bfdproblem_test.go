// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// BFD that does not come up in an Established session is a problem, after the detection time and some seconds.
func TestBFDThatDoesNotComeUpIsAProblem(t *testing.T) {
	const due = 3*time.Second + bfdComesUp
	settings := bgp.BFD{Transmit: 300 * time.Millisecond, Receive: time.Second, Multiplier: 3}
	for name, c := range map[string]struct {
		is    Liveness
		phase Phase
		want  bgp.Session
		// after is when it becomes a problem, 0 for never.
		after time.Duration
		text  string
	}{
		"silent router":       {Liveness{State: "Down"}, Established, bgp.Session{}, due, "no BFD packets arrive"},
		"one way":             {Liveness{State: "Init", Received: true}, Established, bgp.Session{}, due, "does not receive"},
		"shut down":           {Liveness{State: "Down", Received: true}, Established, bgp.Session{}, due, "not shut down"},
		"known":               {Liveness{State: "Down", Problem: "TTL 254"}, Established, bgp.Session{}, 1, "TTL 254"},
		"up":                  {Liveness{State: "Up", Up: true}, Established, bgp.Session{}, 0, ""},
		"no session":          {Liveness{State: "Down"}, Active, bgp.Session{}, 0, ""},
		"BFD has not started": {Liveness{}, Established, bgp.Session{}, 0, ""},
		"draining":            {Liveness{State: "Down"}, Established, bgp.Session{Leaving: true}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{BFD: &monitor{is: c.is}})
				p := newPeer("tor", s)
				c.want.BFD, p.state.Phase, p.want = &settings, c.phase, &c.want
				s.peers["tor"] = p
				problem := func() string { return s.States()[0].BFDProblem }
				if c.after == 0 {
					<-time.After(time.Hour)
					if got := problem(); got != "" {
						t.Errorf("problem %q", got)
					}
					return
				}
				<-time.After(c.after - 1)
				if got := problem(); got != "" && c.is.Problem == "" {
					t.Errorf("problem %q before it is due", got)
				}
				<-time.After(1)
				if got := problem(); !strings.Contains(got, c.text) {
					t.Errorf("problem %q, want %q in it", got, c.text)
				}
			})
		})
	}
}

// BFD that was up, and that the router takes down, has as much time to come up again.
func TestBFDTakenDownHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &monitor{is: Liveness{State: "Up", Up: true}}
		s := New(Options{BFD: m})
		p := newPeer("tor", s)
		p.state.Phase, p.want = Established, &bgp.Session{BFD: &bgp.BFD{}}
		s.peers["tor"] = p
		<-time.After(time.Hour)
		m.is = Liveness{State: "Down", Since: time.Now()}
		<-time.After(bfdComesUp - 1)
		before := s.States()[0].BFDProblem
		<-time.After(1)
		if after := s.States()[0].BFDProblem; before != "" || after == "" {
			t.Errorf("problem %q before it is due, then %q", before, after)
		}
	})
}
