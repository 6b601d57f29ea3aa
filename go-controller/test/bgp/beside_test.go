// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

const (
	theirID   = "10.255.0.2"
	notDialed = "not dialed: another BGP speaker of this node (FRR of frr-k8s?) has a session from "
	// dropped is how often FRR says that it has lost a session.
	dropped = "connectionsDropped"
	// passive is what FRR says of a neighbor that it does not dial, for the router to do so.
	passive = "passive"
)

// shared is a site whose node has a namespace of its own, and the same FRR as the router.
type shared struct {
	*site
	node   string
	theirs frr.Router
}

// ofEachFRR runs a test with each FRR of this machine, which as a router helps in graceful restarts by default. The
// sites have the numbers from subnet on.
func ofEachFRR(t *testing.T, subnet int, test func(*testing.T, *shared)) {
	t.Helper()
	for i, prefix := range frr.Prefixes() {
		t.Run(fmt.Sprintf("%d %s", subnet, prefix), func(t *testing.T) {
			t.Parallel()
			s := &shared{site: newSiteOf(t, subnet+i, prefix)}
			s.node = s.Name + "-node"
			run(t, "ip", "netns", "add", s.node)
			batch(t, "", "link set "+s.dev+" netns "+s.node)
			batch(t, s.node, append([]string{"link set lo up", "link set " + s.dev + " up"}, s.hosts(2)...)...)
			s.theirs = frr.Router{Name: s.node, Dir: s.Dir + "-node", Netns: s.node, Prefix: prefix}
			t.Cleanup(func() {
				if err := s.theirs.Kill(); err != nil {
					t.Error(err)
				}
			})
			test(t, s)
		})
	}
}

// startTheirs starts FRR on the node, with a session from one of its hosts to the router.
func (s *shared) startTheirs(t *testing.T, v6 bool, host int, lines ...string) {
	t.Helper()
	if err := s.theirs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// FRR dials a neighbor a second after it is defined, and ends the session when it gets another source address. So the
	// neighbor, the last line, has all that it needs from the start: vtysh may stall between two lines.
	all := []string{fmt.Sprintf("router bgp %d", nodeASN), " bgp router-id " + theirID, " no bgp ebgp-requires-policy",
		" bgp graceful-restart", " timers bgp 30 90", " neighbor router peer-group"}
	for _, line := range append([]string{fmt.Sprintf("remote-as %d", routerASN), "timers connect 1",
		fmt.Sprintf("update-source %s", s.host(v6, host).Addr())}, lines...) {
		all = append(all, " neighbor router "+line)
	}
	all = append(all, fmt.Sprintf(" neighbor %s peer-group router", s.host(v6, 1).Addr()))
	if err := s.theirs.Configure(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
}

// awaitSession waits until the router has a session with a host of the node, from a speaker with a router ID, and
// returns the router's state of it.
func (s *site) awaitSession(t *testing.T, v6 bool, host int, routerID string) (state map[string]any) {
	t.Helper()
	eventually(t, func(ctx context.Context) (err error) {
		state, err = s.neighborState(ctx, s.host(v6, host).Addr().String())
		if err == nil && (state["bgpState"] != "Established" || state["remoteRouterId"] != routerID) {
			err = fmt.Errorf("the session is %v, of %v", state["bgpState"], state["remoteRouterId"])
		}
		return err
	})
	return state
}

// droppedByFRR returns how often FRR on the node lost its session with the router.
func (s *shared) droppedByFRR(t *testing.T, v6 bool) any {
	t.Helper()
	router := s.host(v6, 1).Addr().String()
	var all map[string]map[string]any
	if err := s.theirs.Show(t.Context(), "show bgp neighbors "+router+" json", &all); err != nil {
		t.Fatal(err)
	}
	return all[router][dropped]
}

// FRR on the node has a session with graceful restart to the router, and a BGPPeer wants one between the same
// addresses, which would replace it. FRR's session stays as it is, whichever side has opened it, and the last error
// names it. Ours opens when FRR has ended its session.
func TestSessionOfAnotherSpeakerOfTheNode(t *testing.T) {
	t.Parallel()
	for subnet, lines := range map[int][]string{110: nil, 120: {passive}} {
		ofEachFRR(t, subnet, func(t *testing.T, s *shared) {
			s.configure(t, s.neighbor(false, 2, nodeASN, "timers connect 1")...)
			s.startTheirs(t, false, 2, lines...)
			s.awaitSession(t, false, 2, theirID)

			d := aloneIn(t, s.node, s.session("tor", false, 2))
			d.refused(t, "tor", notDialed+s.host(false, 2).Addr().String()+" to "+s.host(false, 1).Addr().String())
			if n := s.droppedByFRR(t, false); n != 0.0 {
				t.Errorf("FRR's session was dropped %v times", n)
			}
			end := func() error { return s.theirs.Kill() }
			if lines != nil { // frr-k8s takes the neighbor away, as when a BGPPeer gets another backend
				end = func() error {
					return s.theirs.Configure(t.Context(), fmt.Sprintf("router bgp %d", nodeASN),
						fmt.Sprintf(" no neighbor %s", s.host(false, 1).Addr()))
				}
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			s.awaitSession(t, false, 2, s.host(false, 2).Addr().String())
		})
	}
}

// FRR starts on the node when we have a session between the same addresses. As soon as the router has FRR's, ours ends
// for good: the two do not replace each other.
func TestAnotherSpeakerComesLater(t *testing.T) {
	t.Parallel()
	ofEachFRR(t, 130, func(t *testing.T, s *shared) {
		s.configure(t, s.neighbor(false, 2, nodeASN)...)
		c := s.session("tor", false, 2)
		c.Neighbor.GracefulRestart = true
		d := aloneIn(t, s.node, c)
		s.awaitSession(t, false, 2, s.host(false, 2).Addr().String())
		s.startTheirs(t, false, 2)
		s.awaitSession(t, false, 2, theirID)
		d.refused(t, "tor", notDialed)
		s.awaitSession(t, false, 2, theirID)
	})
}

// Without graceful restart, the router refuses FRR on the node as long as it has our session. Ours gives way after one
// attempt of FRR, also when FRR has been restarted and ours had the session meanwhile.
func TestAnotherSpeakerIsRefusedOnce(t *testing.T) {
	t.Parallel()
	ofEachFRR(t, 160, func(t *testing.T, s *shared) {
		s.configure(t, s.neighbor(false, 2, nodeASN)...)
		d := aloneIn(t, s.node, s.session("tor", false, 2))
		for range 2 {
			s.awaitSession(t, false, 2, s.host(false, 2).Addr().String())
			s.startTheirs(t, false, 2)
			s.awaitSession(t, false, 2, theirID)
			d.refused(t, "tor", notDialed)
			s.awaitSession(t, false, 2, theirID)
			if err := s.theirs.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FRR and our daemon have sessions with one router, with BFD, from addresses of their own. All are up, whichever starts
// first, and that of the first stays when the other is killed.
func TestDaemonBesideFRR(t *testing.T) {
	t.Parallel()
	for subnet, first := range map[int]bool{140: true, 150: false} { // whether FRR starts first
		v6 := !first
		ofEachFRR(t, subnet, func(t *testing.T, s *shared) {
			// The detection time is far longer than a busy machine stalls.
			s.bfdProfile(t, &s.Router)
			// FRR on the node listens on all addresses: it would take a connection of the router to ours for its own.
			for host := 2; host <= 3; host++ {
				s.configure(t, s.neighbor(v6, host, nodeASN, "bfd profile slow", passive)...)
			}
			c := s.session("tor", v6, 2)
			c.BFD = &bgp.BFD{Receive: time.Second, Transmit: time.Second, Multiplier: 20}
			ourID := c.Neighbor.RouterID.String()
			theirs := func() {
				t.Helper()
				s.startTheirs(t, v6, 3)
				s.bfdProfile(t, &s.theirs, fmt.Sprintf("router bgp %d", nodeASN),
					fmt.Sprintf(" neighbor %s bfd profile slow", s.host(v6, 1).Addr()))
				s.awaitSession(t, v6, 3, theirID)
			}
			var d *daemon
			ours := func() {
				t.Helper()
				d = aloneIn(t, s.node, c)
				s.awaitSession(t, v6, 2, ourID)
			}
			kills := []func(){func() { kill(d.Cmd) }, func() {
				if err := s.theirs.Kill(); err != nil {
					t.Fatal(err)
				}
			}}
			starts := []func(){ours, theirs}
			if first {
				slices.Reverse(starts)
				slices.Reverse(kills)
			}
			starts[0]()
			starts[1]()
			s.bfdUp(t, v6)
			kept, id := 2, ourID // the session of that which started first
			if first {
				kept, id = 3, theirID
			}
			before := s.awaitSession(t, v6, kept, id)[dropped]
			kills[1]()
			eventually(t, func(ctx context.Context) error {
				state, err := s.neighborState(ctx, s.host(v6, 5-kept).Addr().String())
				if err == nil && state["bgpState"] == "Established" {
					err = errors.New("the router has the session of what was killed")
				}
				return err
			})
			if now := s.awaitSession(t, v6, kept, id)[dropped]; now != before {
				t.Errorf("the router lost the session that should stay: %v times, %v before", now, before)
			}
		})
	}
}

// bfdProfile configures a profile of BFD, and other lines.
func (s *shared) bfdProfile(t *testing.T, r *frr.Router, lines ...string) {
	t.Helper()
	if err := r.Configure(t.Context(), append([]string{"bfd", " profile slow", "  receive-interval 1000",
		"  transmit-interval 1000", "  detect-multiplier 20", "  exit", " exit"}, lines...)...); err != nil {
		t.Fatal(err)
	}
}

// bfdUp waits until the router has a BFD session with both hosts of the node, which takes packets in both directions.
func (s *shared) bfdUp(t *testing.T, v6 bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var peers []struct{ Peer, Status string }
		if err := s.Show(ctx, "show bfd peers json", &peers); err != nil {
			return err
		}
		for host := 2; host <= 3; host++ {
			want := struct{ Peer, Status string }{s.host(v6, host).Addr().String(), "up"}
			if !slices.Contains(peers, want) {
				return fmt.Errorf("BFD of the router: %+v, want %v", peers, want)
			}
		}
		return nil
	})
}
