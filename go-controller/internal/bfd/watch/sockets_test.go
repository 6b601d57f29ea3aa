// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
)

// pair returns two Watchers, on the node and on the router.
func pair(t *testing.T, n network) (node, router *watcher) {
	t.Helper()
	return newWatcher(t, n.node), newWatcher(t, n.router)
}

// between makes both Watchers monitor each other with their n-th addresses.
func between(node, router *watcher, name, format string, n int, s bfd.Settings) {
	target, _ := onLAN(format, n, s)
	node.Watch(name, target)
	target.Peer, target.Local = target.Local, target.Peer
	router.Watch(name, target)
}

// sendRaw sends a packet from the router to the node that no Watcher would send.
func sendRaw(t *testing.T, n network, from, to string, port, ttl int, payload []byte) {
	t.Helper()
	err := <-inside(n.router, func() error {
		src, dst := netip.AddrPortFrom(netip.MustParseAddr(from), 0), netip.AddrPortFrom(netip.MustParseAddr(to),
			uint16(port))
		conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(src), net.UDPAddrFromAddrPort(dst))
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		var set error
		err = raw.Control(func(fd uintptr) {
			if dst.Addr().Is6() {
				set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ttl)
			} else {
				set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, ttl)
			}
		})
		if err = errors.Join(err, set); err == nil {
			_, err = conn.Write(payload)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A packet that does not come from the peer, or comes from too far away, is rejected, and the session reports the
// reason.
func TestPacketsOfOtherSendersAreIgnored(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	w := newWatcher(t, n.node)
	far := every(300)
	far.Multihop, far.MinimumTTL = true, 250
	for name, format := range map[string]string{"IPv4": lan4, "IPv6": lan6} {
		single, _ := onLAN(format, 1, every(300))
		multi, _ := onLAN(format, 1, far)
		w.Watch(name, single)
		w.Watch(name+" multihop", multi)
		broken, _ := onLAN(format, 3, every(300))
		broken.Local = single.Local
		w.Watch(name+" broken", broken)
		w.Watch(name+" other", watch.Target{Peer: netip.MustParseAddr(fmt.Sprintf(format, 109)), Interface: "far",
			Settings: every(300)})
		peer, local := single.Peer.String(), single.Local.String()
		eventually(t, "sends, so listens", func() bool { s, ok := w.Session(name + " other"); return ok && s.Interval > 0 })
		down := bfd.Packet{State: bfd.Down, Multiplier: 3, My: 7, Transmit: time.Second, Receive: time.Second}.Append(nil)
		refused := func(session string, port, ttl int, payload []byte, why string) {
			t.Helper()
			sendRaw(t, n, peer, local, port, ttl, payload)
			eventually(t, session+" says "+why, func() bool {
				s, _ := w.Session(session)
				return s.State == bfd.Down && s.Err != nil && strings.HasSuffix(s.Err.Error(), why)
			})
		}
		refused(name, 3784, 254, down, "from "+peer+": TTL 254, want at least 255")
		refused(name+" multihop", 4784, 249, down, "from "+peer+": TTL 249, want at least 250")
		peer = fmt.Sprintf(format, 103)
		refused(name+" broken", 3784, 255, append(down[:2:2], make([]byte, 30)...),
			"from "+peer+": length 0, want at least 24")
		peer = single.Peer.String()
		// Packets from another address, through another interface, to another address and with another discriminator
		// are ignored.
		sendRaw(t, n, fmt.Sprintf(format, 102), local, 3784, 255, down)
		sendRaw(t, n, fmt.Sprintf(format, 109), local, 3784, 255, down)
		sendRaw(t, n, peer, fmt.Sprintf(format, 2), 3784, 255, down)
		sendRaw(t, n, peer, local, 3784, 255, bfd.Packet{State: bfd.Init, Multiplier: 3, My: 7, Your: 1,
			Transmit: time.Second, Receive: time.Second}.Append(nil))
		sendRaw(t, n, peer, local, 3784, 255, down)
		w.awaitState(t, name, bfd.Init)
		for _, silent := range []string{name + " multihop", name + " other"} {
			if state := w.state(silent); state != bfd.Down {
				t.Errorf("%s is %s", silent, state)
			}
		}
		sendRaw(t, n, peer, local, 4784, 250, down)
		if s := w.awaitState(t, name+" multihop", bfd.Init); s.Err != nil {
			t.Errorf("%s multihop: %v", name, s.Err)
		}
	}
}

// The error names another daemon that uses the port, and the session starts when that daemon ends. It ends without
// informing the peer, which considers it a failure and not the action of an administrator.
func TestNewWatcherWaitsForPortInUse(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	old, router := pair(t, n)
	between(old, router, "peer", lan4, 1, every(100))
	old.awaitState(t, "peer", bfd.Up)
	router.awaitState(t, "peer", bfd.Up)

	young := newWatcher(t, n.node)
	target, _ := onLAN(lan4, 1, every(100))
	young.Watch("peer", target)
	eventually(t, "the port is in use", func() bool {
		s, _ := young.Session("peer")
		return errors.Is(s.Err, syscall.EADDRINUSE) && strings.Contains(s.Err.Error(), "UDP port 3784: another BFD daemon")
	})
	young.Leave("peer")
	eventually(t, "a session that never started is removed at once",
		func() bool { _, ok := young.Session("peer"); return !ok })
	young.Watch("peer", target)
	old.stop()
	if s := router.awaitState(t, "peer", bfd.Down); s.Diagnostic != bfd.DetectionTimeExpired {
		t.Errorf("the peer's end: %+v", s)
	}
	if s := young.awaitState(t, "peer", bfd.Up); s.Err != nil {
		t.Error(s.Err)
	}
}

// Addresses and interfaces disappear and come back. The session reports an error and recovers.
func TestSessionsFollowRemovedAddressAndInterface(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	node, router := pair(t, n)
	node.Watch("address", watch.Target{Peer: netip.MustParseAddr("10.66.0.150"), Local: netip.MustParseAddr("10.66.0.50"),
		Settings: every(100)})
	node.Watch("interface", watch.Target{Peer: netip.MustParseAddr("fe80::8%late"), Settings: every(100)})
	router.Watch("address", watch.Target{Peer: netip.MustParseAddr("10.66.0.50"),
		Local: netip.MustParseAddr("10.66.0.150"), Settings: every(100)})
	router.Watch("interface", watch.Target{Peer: netip.MustParseAddr("fe80::9"), Local: netip.MustParseAddr("fe80::8"),
		Interface: "late", Settings: every(100)})
	eventually(t, "the address lacks", func() bool {
		s, _ := node.Session("address")
		return errors.Is(s.Err, syscall.EADDRNOTAVAIL)
	})
	node.Watch("families", watch.Target{Peer: netip.MustParseAddr("10.66.0.1"), Local: netip.MustParseAddr("fd66::1"),
		Settings: every(100)})
	node.Watch("unused", watch.Target{Settings: every(100)})
	for _, name := range []string{"families", "unused"} {
		eventually(t, "there is no way", func() bool {
			s, _ := node.Session(name)
			return s.Err != nil && strings.Contains(s.Err.Error(), "no way from ")
		})
		node.Leave(name)
	}
	eventually(t, "the interface lacks", func() bool {
		s, _ := node.Session("interface")
		return s.Err != nil && strings.Contains(s.Err.Error(), `interface "late"`)
	})
	n.ip(t, n.router, "addr add 10.66.0.150/24 dev lan")
	for range 2 {
		n.ip(t, n.node, "addr add 10.66.0.50/24 dev lan")
		n.addLate(t)
		for _, name := range []string{"address", "interface"} {
			if s := node.awaitState(t, name, bfd.Up); s.Err != nil {
				t.Errorf("%s: %v", name, s.Err)
			}
		}
		n.ip(t, n.node, "addr del 10.66.0.50/24 dev lan", "link del late")
		for _, name := range []string{"address", "interface"} {
			node.awaitState(t, name, bfd.Down)
			eventually(t, name+" reports the error", func() bool { s, _ := node.Session(name); return s.Err != nil })
		}
	}
}

// A passive session that waits for its peer detects that its interface was replaced.
func TestPassiveSessionStartsOnNewInterface(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	node, router := pair(t, n)
	n.addLate(t)
	passive := every(100)
	passive.Passive = true
	node.Watch("peer", watch.Target{Peer: netip.MustParseAddr("fe80::8%late"), Settings: passive})
	eventually(t, "begun", func() bool { s, _ := node.Session("peer"); return s.Interval > 0 })
	n.ip(t, n.node, "link del late")
	n.addLate(t)
	router.Watch("peer", watch.Target{Peer: netip.MustParseAddr("fe80::9%late"), Settings: every(100)})
	node.awaitState(t, "peer", bfd.Up)
}

// A session that is monitored at another address is a new one, and the old one is left.
func TestWatchReplacesSessionWhenAddressChanges(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	node, router := pair(t, n)
	between(node, router, "peer", lan4, 1, every(100))
	node.awaitState(t, "peer", bfd.Up)
	old, _ := onLAN(lan4, 1, every(100))
	target, _ := onLAN(lan6, 1, every(100))
	node.Watch("peer", target)
	if s := router.awaitState(t, "peer", bfd.Down); s.Diagnostic != bfd.NeighborSignaledDown {
		t.Errorf("the old peer's end: %+v", s)
	}
	router.Watch("peer6", watch.Target{Peer: target.Local, Local: target.Peer, Settings: every(100)})
	node.awaitState(t, "peer", bfd.Up)
	for _, state := range node.states("peer", 0) {
		if state == bfd.AdminDown {
			t.Errorf("the end of %s was reported as one of %s", old.Peer, target.Peer)
		}
	}
}

// A hundred sessions need almost no CPU time, and none flaps.
func TestHundredSessions(t *testing.T) {
	n := newNetwork(t)
	node, router := pair(t, n)
	names := map[string]bool{}
	for host := 1; host <= 10; host++ {
		for peer := 101; peer <= 110; peer++ {
			name := fmt.Sprintf("%d-%d", host, peer)
			names[name] = true
			target := watch.Target{Local: netip.MustParseAddr(fmt.Sprintf(lan4, host)),
				Peer: netip.MustParseAddr(fmt.Sprintf(lan4, peer)), Settings: every(300)}
			node.Watch(name, target)
			target.Local, target.Peer = target.Peer, target.Local
			router.Watch(name, target)
		}
	}
	for name := range names {
		node.awaitTold(t, name, bfd.Up)
		router.awaitTold(t, name, bfd.Up)
	}
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before) // fails only for an unknown argument
	notified := node.total() + router.total()
	pause := remains(t, "time passes", 3*time.Second, func() bool { return true })
	if now := node.total() + router.total(); now != notified && pause < 150*time.Millisecond {
		t.Errorf("%d notifications although no pause was longer than %v", now-notified, pause)
	}
	_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
	spent := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	t.Logf("both ends of 100 sessions of 300 ms: %v in 3 s", spent)
}
