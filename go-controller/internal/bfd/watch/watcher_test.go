// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

const (
	node4, router4 = "10.66.0.1", "10.66.0.101"
	node6, router6 = "fd66::1", "fd66::101"
)

// between runs a Watcher on the node and one on the router, which monitor each other in a session named peer.
func between(t *testing.T, interval time.Duration) (s *segment, node, router *watched) {
	t.Helper()
	s = &segment{}
	node, router = s.join(t, node4, node6), s.join(t, router4, router6)
	node.Watch("peer", target(node4, router4, every(interval)))
	router.Watch("peer", target(router4, node4, every(interval)))
	pass(5 * time.Second)
	node.expect(t, "at first", "peer", bfd.Up)
	router.expect(t, "at first", "peer", bfd.Up)
	return s, node, router
}

// The kernel drops what does not count for a session that is Up, and nothing that it needs to come up again.
func TestPortIsFilteredByTheStateOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, node, _ := between(t, 100*time.Millisecond)
		expect := func(when string, up bool) {
			t.Helper()
			node.Watcher.mu.Lock()
			defer node.Watcher.mu.Unlock()
			want := []remote{{addr: netip.MustParseAddr(router4), isUp: up, minTTL: 255,
				discriminator: node.find("peer").machine.Discriminator()}}
			if got := node.ports[0].remotes; !slices.Equal(got, want) {
				t.Errorf("%s: received are packets for %+v, want %+v", when, got, want)
			}
		}
		expect("up", true)
		s.setLossy(true)
		pass(time.Second)
		expect("down", false)
		s.setLossy(false)
		pass(5 * time.Second)
		expect("up again", true)
	})
}

// Both ends detect a silent failure within the detection time, counted from the last packet that arrived, and come up
// again by themselves.
func TestFailureIsDetectedWithinTheDetectionTime(t *testing.T) {
	for _, interval := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond,
		time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, node, router := between(t, interval)
			s.setLossy(true)
			cut := time.Now()
			pass(time.Minute)
			for name, end := range map[string]*watched{"node": node, "router": router} {
				is := end.expect(t, "cut off", "peer", bfd.Down)
				if is.Diagnostic != bfd.DetectionTimeExpired {
					t.Errorf("%s: diagnostic %v", name, is.Diagnostic)
				}
				if after := is.Since.Sub(cut); after < 2*interval || after > 3*interval+latency {
					t.Errorf("3 x %s: the %s detects it after %s", interval, name, after)
				}
			}
			s.setLossy(false)
			pass(5 * time.Second)
			node.expect(t, "after the cut", "peer", bfd.Up)
			router.expect(t, "after the cut", "peer", bfd.Up)
		})
	}
}

// Other timers are agreed on by a poll sequence, and the session stays up.
func TestTimersChangeWithoutAFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, node, router := between(t, 300*time.Millisecond)
		up := node.states("peer")
		for _, interval := range []time.Duration{50 * time.Millisecond, time.Second, 20 * time.Millisecond,
			300 * time.Millisecond} {
			node.Watch("peer", target(node4, router4, every(interval)))
			pass(5 * time.Second)
			// The slower end decides.
			want := max(interval, 300*time.Millisecond)
			for _, end := range []*watched{node, router} {
				if s := end.expect(t, interval.String(), "peer", bfd.Up); s.Interval != want || s.Detection != 3*want {
					t.Errorf("every %s: interval %s and detection time %s, want %s and %s", interval, s.Interval, s.Detection,
						want, 3*want)
				}
			}
		}
		if states := node.states("peer"); states != up {
			t.Errorf("states %s, want only %s", states, up)
		}
	})
}

// Leaving informs the peer, which does not take it for a failure, and keeps doing so for a while. Then the port is
// closed.
func TestLeaveInformsThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, node, router := between(t, 300*time.Millisecond)
		node.Leave("peer")
		pass(latency)
		if s := router.expect(t, "at once", "peer", bfd.Down); s.Diagnostic != bfd.NeighborSignaledDown {
			t.Errorf("diagnostic %v", s.Diagnostic)
		}
		pass(adminDownPeriod - 2*latency)
		node.expect(t, "while it is leaving", "peer", bfd.AdminDown)
		pass(latency)
		if _, ok := node.Session("peer"); ok {
			t.Error("the session is still there")
		}
		if _, open := node.pending[0]; open {
			t.Error("the port is open without a session")
		}
		node.Watch("peer", target(node4, router4, every(300*time.Millisecond)))
		pass(5 * time.Second)
		node.expect(t, "back", "peer", bfd.Up)
	})
}

// The end of the process must look like a failure, and not like the action of an administrator.
func TestEndOfRunDoesNotInformThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, node, router := between(t, 100*time.Millisecond)
		node.stop()
		pass(time.Second)
		if s := router.expect(t, "the node's process has ended", "peer", bfd.Down); s.Diagnostic != bfd.DetectionTimeExpired {
			t.Errorf("diagnostic %v", s.Diagnostic)
		}
	})
}

// The session reports that another agent has the port, and starts within a second after that agent has ended.
func TestPortIsOpenedWhenItIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &segment{}
		node, router := s.join(t, node4), s.join(t, router4)
		node.set(func(h *host) { h.taken[0] = true })
		router.Watch("peer", target(router4, node4, every(100*time.Millisecond)))
		node.Watch("peer", target(node4, router4, every(100*time.Millisecond)))
		pass(time.Minute)
		is := node.expect(t, "the port is taken", "peer", bfd.Down)
		if !errors.Is(is.Err, syscall.EADDRINUSE) || !strings.Contains(is.Err.Error(), "UDP port 3784: another agent") {
			t.Errorf("error %v", is.Err)
		}
		node.Leave("peer")
		synctest.Wait()
		if _, ok := node.Session("peer"); ok {
			t.Error("a session that never started is not removed at once")
		}
		node.Watch("peer", target(node4, router4, every(100*time.Millisecond)))
		synctest.Wait()
		node.set(func(h *host) { h.taken[0] = false })
		pass(retryEvery)
		if is, _ := node.Session("peer"); is.Err != nil {
			t.Errorf("after %s: %v", retryEvery, is.Err)
		}
		pass(5 * time.Second)
		node.expect(t, "the port is free", "peer", bfd.Up)
	})
}

// The session reports that its address is gone, and recovers within a second after it is back.
func TestSessionFollowsItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, node, _ := between(t, 100*time.Millisecond)
		addr := target(node4, router4, bfd.Settings{}).Local
		for range 2 {
			node.set(func(h *host) { delete(h.addrs, addr) })
			pass(time.Minute)
			if s := node.expect(t, "without its address", "peer", bfd.Down); !errors.Is(s.Err, syscall.EADDRNOTAVAIL) {
				t.Errorf("error %v", s.Err)
			}
			node.set(func(h *host) { h.addrs[addr] = true })
			pass(5 * time.Second)
			if s := node.expect(t, "the address is back", "peer", bfd.Up); s.Err != nil {
				t.Errorf("error %v", s.Err)
			}
		}
	})
}

// A session that is monitored at another address is a new one. The old one is left, which is not reported as a state of
// the new one.
func TestWatchReplacesSessionWhenAddressChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, node, router := between(t, 100*time.Millisecond)
		router.Watch("peer6", target(router6, node6, every(100*time.Millisecond)))
		node.Watch("peer", target(node6, router6, every(100*time.Millisecond)))
		pass(latency)
		if s := router.expect(t, "the address changes", "peer", bfd.Down); s.Diagnostic != bfd.NeighborSignaledDown {
			t.Errorf("diagnostic of the old peer %v", s.Diagnostic)
		}
		pass(5 * time.Second)
		node.expect(t, "at the new address", "peer", bfd.Up)
		router.expect(t, "at the new address", "peer6", bfd.Up)
		if states := node.states("peer"); strings.Contains(states, bfd.AdminDown.String()) {
			t.Errorf("states %s", states)
		}
	})
}

// A process that was suspended reads what the peer has sent before it considers the peer silent. The peer's end fails.
func TestSuspendedProcessDoesNotBlameThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, node, router := between(t, 100*time.Millisecond)
		node.set(func(h *host) { h.suspended = time.Now().Add(10 * time.Second) })
		pass(9 * time.Second)
		if s := router.expect(t, "the node is suspended", "peer", bfd.Down); s.Diagnostic != bfd.DetectionTimeExpired {
			t.Errorf("diagnostic of the router %v", s.Diagnostic)
		}
		pass(5 * time.Second)
		node.expect(t, "after it", "peer", bfd.Up)
		router.expect(t, "after it", "peer", bfd.Up)
		if why := node.lastFailure("peer"); why != bfd.NeighborSignaledDown {
			t.Errorf("the node was down because of %v, want what its peer said", why)
		}
	})
}

// None of a hundred sessions flaps, and changes are notified exactly once.
func TestHundredSessionsStayUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &segment{}
		var nodes, routers []string
		for i := range 10 {
			nodes = append(nodes, fmt.Sprintf("10.66.0.%d", 1+i))
			routers = append(routers, fmt.Sprintf("10.66.0.%d", 101+i))
		}
		node, router := s.join(t, nodes...), s.join(t, routers...)
		for _, a := range nodes {
			for _, b := range routers {
				node.Watch(a+b, target(a, b, every(300*time.Millisecond)))
				router.Watch(a+b, target(b, a, every(300*time.Millisecond)))
			}
		}
		pass(10 * time.Second)
		for _, a := range nodes {
			for _, b := range routers {
				for _, end := range []*watched{node, router} {
					if states := end.states(a + b); states != "[Init Up]" && states != "[Up]" {
						t.Errorf("states %s", states)
					}
				}
			}
		}
	})
}

// A host that sends with the router's address and does not see our packets makes no socket be opened for each of them.
func TestBlindPacketsOpenNoSockets(t *testing.T) {
	for _, up := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			_, node, router := between(t, 300*time.Millisecond)
			if !up {
				router.stop()
				pass(5 * time.Second)
			}
			var k kind
			before := 0
			node.set(func(h *host) {
				before = h.sinks
				for k = range h.pending {
					for i := range 300 {
						p := bfd.Packet{State: bfd.Down, Multiplier: 3, My: 12345, Transmit: time.Second, Receive: time.Second}
						h.pending[k] = append(h.pending[k], datagram{from: netip.MustParseAddr(router4),
							to: netip.MustParseAddr(node4), ttl: 255, source: uint16(firstSource + 1 + i), payload: p.Append(nil)})
					}
				}
			})
			node.host.wake()
			synctest.Wait()
			node.set(func(h *host) {
				if len(h.pending[k]) > 0 || h.sinks != before || before == 0 {
					t.Errorf("up %t: %d sockets instead of %d, %d packets are left", up, h.sinks, before, len(h.pending[k]))
				}
			})
		})
	}
}
