// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// record records a speaker's calls of BFD, and simulates the state of the session.
type record struct {
	state string
	mu    sync.Mutex
	asked []string
}

func (r *record) write(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, fmt.Sprintf(format, args...))
}

// Watch implements speaker.BFD.
func (r *record) Watch(name string, p speaker.Path) {
	r.write("watch %s from %s to %s every %s", name, p.Local, p.Peer, p.BFD.Transmit)
}

// Leave implements speaker.BFD.
func (r *record) Leave(name string) { r.write("leave %s", name) }

// Session implements speaker.BFD. The failure precedes the last Leave and Watch, so it must not end a session.
func (r *record) Session(string) speaker.Liveness {
	return speaker.Liveness{State: r.state, Failures: 1}
}

func (r *record) is(want ...string) func(context.Context) error {
	return func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.Equal(r.asked, want) {
			return fmt.Errorf("BFD parameters: %q, want %q", r.asked, want)
		}
		return nil
	}
}

// BFD watches the peer from Established until the peer is removed. BFD parameters do not affect the session, nor does
// the end of BFD that is Down. When BFD starts before that is tested on a virtual clock (package speaker).
func TestBFDFollows(t *testing.T) {
	t.Parallel()
	s := newSite(t, 40)
	r := &record{state: "Down"}
	n := newNode(t, speaker.Options{BFD: r})
	c := s.session("tor", false, 2)
	c.BFD = &bgp.BFD{Receive: 100 * time.Millisecond, Transmit: 100 * time.Millisecond, Multiplier: 3}
	n.want(c)
	refusal(t, n, "tor", "check that this node is configured as a neighbor")
	// The node dials all the time. While vtysh activates one family after the other, it must not get a session: FRR would
	// end that for the next family.
	s.configure(t, s.neighbor(false, 2, nodeASN, "shutdown")...)
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN),
		fmt.Sprintf(" no neighbor %s shutdown", s.host(false, 2).Addr()))
	was := n.established(t, "tor")
	watch := fmt.Sprintf("watch tor from %s to %s every ", s.host(false, 2).Addr(), s.host(false, 1).Addr())
	eventually(t, r.is(watch+"100ms"))
	if was.BFD != "Down" {
		t.Errorf("state of BFD %q", was.BFD)
	}
	c.BFD = &bgp.BFD{Receive: 50 * time.Millisecond, Transmit: 50 * time.Millisecond, Multiplier: 3}
	n.want(c)
	eventually(t, r.is(watch+"100ms", watch+"50ms"))
	c.BFD = nil
	n.want(c)
	eventually(t, r.is(watch+"100ms", watch+"50ms", "leave tor"))
	c.BFD = &bgp.BFD{Receive: 50 * time.Millisecond, Transmit: 50 * time.Millisecond, Multiplier: 3}
	n.want(c)
	eventually(t, r.is(watch+"100ms", watch+"50ms", "leave tor", watch+"50ms"))
	if now := n.state("tor"); now.Since != was.Since {
		t.Errorf("the session is of %s, was of %s", now.Since, was.Since)
	}
	if err := s.Kill(frr.BGPD); err != nil {
		t.Fatal(err)
	}
	n.lost(t, "tor")
	eventually(t, r.is(watch+"100ms", watch+"50ms", "leave tor", watch+"50ms")) // required to detect that the path is back
	n.forget("tor")
	eventually(t, r.is(watch+"100ms", watch+"50ms", "leave tor", watch+"50ms", "leave tor"))
}
