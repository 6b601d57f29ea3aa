// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// sendRaw sends packets from the router to the node that no Watcher would send.
func sendRaw(t *testing.T, n site, from, to string, port, ttl int, payloads ...[]byte) {
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
		err = errors.Join(err, set)
		for _, payload := range payloads {
			if err != nil {
				break
			}
			// An ICMP answer to a packet before fails the call, and this one is not sent (sock_error in the kernel).
			for _, err = conn.Write(payload); errors.Is(err, syscall.ECONNREFUSED); {
				_, err = conn.Write(payload)
			}
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
	n := newSite(t)
	w := n.run(t, n.node)
	far := every(300 * time.Millisecond)
	far.Multihop, far.MinimumTTL = true, 250
	for name, format := range map[string]string{"IPv4": lan4, "IPv6": lan6} {
		single, _ := onLAN(format, 1, every(300*time.Millisecond))
		multi, _ := onLAN(format, 1, far)
		w.Watch(name, single)
		w.Watch(name+" multihop", multi)
		broken, _ := onLAN(format, 3, every(300*time.Millisecond))
		broken.Local = single.Local
		w.Watch(name+" broken", broken)
		w.Watch(name+" other", Target{Peer: netip.MustParseAddr(fmt.Sprintf(format, 109)), Interface: "far",
			Settings: every(300 * time.Millisecond)})
		peer, local := single.Peer.String(), single.Local.String()
		w.await(t, name+" other", "sending, so the port is open", func(s Session) bool { return s.Interval > 0 })
		// The detection time is so long that the session does not go down during the test.
		down := bfd.Packet{State: bfd.Down, Multiplier: 3, My: 7, Transmit: time.Minute, Receive: time.Second}.Append(nil)
		refused := func(session string, port, ttl int, payload []byte, why string) {
			t.Helper()
			sendRaw(t, n, peer, local, port, ttl, payload)
			w.await(t, session, "down: "+why, func(s Session) bool {
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
			Transmit: time.Minute, Receive: time.Second}.Append(nil))
		sendRaw(t, n, peer, local, 3784, 255, down)
		w.awaitState(t, name, bfd.Init)
		for _, silent := range []string{name + " multihop", name + " other"} {
			if s, _ := w.Session(silent); s.State != bfd.Down {
				t.Errorf("%s is %s", silent, s.State)
			}
		}
		sendRaw(t, n, peer, local, 4784, 250, down)
		if s := w.awaitState(t, name+" multihop", bfd.Init); s.Err != nil {
			t.Errorf("%s multihop: %v", name, s.Err)
		}
	}
}

// Packets of other senders take no room of those of the peer, however many there are: any pod can send them.
func TestPortHasRoomForItsPeers(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	for k, format := range map[kind]string{0: lan4, overIPv6: lan6} {
		peer, other, local := fmt.Sprintf(format, 101), fmt.Sprintf(format, 102), fmt.Sprintf(format, 1)
		r := listen(t, n, k, remote{addr: netip.MustParseAddr(peer)})
		const more = 5000 // than fit in the buffer of a socket
		// On a busy machine, the kernel may drop any packet before it comes to a socket (net.core.netdev_max_backlog).
		await.True(t, fmt.Sprintf("a packet of the peer over %s", k), func() bool {
			sendRaw(t, n, other, local, 3784, 255, slices.Repeat([][]byte{make([]byte, bfd.Size)}, more)...)
			sendRaw(t, n, peer, local, 3784, 255, make([]byte, bfd.Size))
			got := false
			r.read(func(d datagram) {
				if got = true; d.from.String() != peer {
					t.Fatalf("over %s a packet from %s", k, d.from)
				}
			})
			return got
		})
	}
}

// While a session is Up, packets from the address of the peer that do not count for it take no room, either. Nor do
// those from the address of another peer whose session is not Up. Any host on the link can send them.
func TestForgedPacketsTakeNoRoomOfThePeers(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	const ours, forged, near, far, more = 7, 8, 250, 249, 1000
	packet := func(your uint32) []byte {
		return bfd.Packet{State: bfd.Up, Multiplier: 3, My: 9, Your: your}.Append(nil)
	}
	type content struct {
		your uint32
		ttl  int
	}
	for k, format := range map[kind]string{0: lan4, overIPv6: lan6, multihop: lan4, multihop | overIPv6: lan6} {
		peer, local := fmt.Sprintf(format, 101), fmt.Sprintf(format, 1)
		end := remote{addr: netip.MustParseAddr(peer), discriminator: ours, isUp: true, minTTL: near}
		waiting := remote{addr: netip.MustParseAddr(fmt.Sprintf(format, 102)), discriminator: ours + 1}
		r := listen(t, n, k, end, waiting)
		// On a busy machine, the kernel may drop any packet before it comes to a socket (net.core.netdev_max_backlog).
		expect := func(when string, repeat int, want ...content) {
			t.Helper()
			got := map[content]bool{}
			defer func() {
				if t.Failed() {
					t.Logf("got %v", got)
				}
			}()
			await.True(t, fmt.Sprintf("packets to port %d over %s %s", k.port(), k, when), func() bool {
				for _, ttl := range []int{far, near} {
					sendRaw(t, n, peer, local, int(k.port()), ttl,
						slices.Repeat([][]byte{packet(forged), packet(0)}, repeat)...)
				}
				sendRaw(t, n, peer, local, int(k.port()), far, slices.Repeat([][]byte{packet(ours)}, repeat)...)
				sendRaw(t, n, waiting.addr.String(), local, int(k.port()), far, slices.Repeat([][]byte{packet(0)}, repeat)...)
				sendRaw(t, n, peer, local, int(k.port()), near, packet(ours))
				r.read(func(d datagram) {
					if d.from == waiting.addr {
						return
					}
					is := content{binary.BigEndian.Uint32(d.payload[8:]), d.ttl} // RFC 5880 section 4.1
					if got[is] = true; !slices.Contains(want, is) {
						t.Fatalf("over %s %s: a packet with %+v", k, when, is)
					}
				})
				return len(got) == len(want)
			})
		}
		expect("while the session is up", more, content{ours, near})
		end.isUp = false
		if err := r.from([]remote{end}); err != nil {
			t.Fatal(err)
		}
		expect("before it is up", 1, content{ours, near}, content{ours, far}, content{0, near}, content{0, far})
	}
}

// listen opens a port of the node for the packets of some peers.
func listen(t *testing.T, n site, k kind, peers ...remote) (r receiver) {
	t.Helper()
	if err := <-inside(n.node, func() error {
		own, err := newKernel()
		if err != nil {
			return err
		}
		t.Cleanup(own.close)
		if r, err = own.listen(k); err != nil {
			return err
		}
		t.Cleanup(r.close)
		return r.from(peers)
	}); err != nil {
		t.Fatalf("over %s: %v", k, err)
	}
	return r
}

// The error names another agent that uses the port: the peer would see two senders with one address.
func TestPortOfAnotherAgentIsNotShared(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	old, young := n.run(t, n.node), n.run(t, n.node)
	first, _ := onLAN(lan4, 1, every(100*time.Millisecond))
	old.Watch("peer", first)
	old.await(t, "peer", "sending", func(s Session) bool { return s.Interval > 0 })
	young.Watch("peer", first)
	young.await(t, "peer", "without a port", func(s Session) bool {
		return errors.Is(s.Err, syscall.EADDRINUSE) && strings.Contains(s.Err.Error(), "UDP port 3784: another agent")
	})
	old.Leave("peer")
	old.awaitGone(t, "peer")
	young.await(t, "peer", "sending", func(s Session) bool { return s.Interval > 0 && s.Err == nil })
}

// Addresses and interfaces disappear and come back. The session reports an error and recovers.
func TestSessionsFollowRemovedAddressAndInterface(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	node, router := n.run(t, n.node), n.run(t, n.router)
	node.Watch("address", Target{Peer: netip.MustParseAddr("10.66.0.150"), Local: netip.MustParseAddr("10.66.0.50"),
		Settings: every(100 * time.Millisecond)})
	node.Watch("interface", Target{Peer: netip.MustParseAddr("fe80::8%late"), Settings: every(100 * time.Millisecond)})
	router.Watch("address", Target{Peer: netip.MustParseAddr("10.66.0.50"),
		Local: netip.MustParseAddr("10.66.0.150"), Settings: every(100 * time.Millisecond)})
	router.Watch("interface", Target{Peer: netip.MustParseAddr("fe80::9"), Local: netip.MustParseAddr("fe80::8"),
		Interface: "late", Settings: every(100 * time.Millisecond)})
	node.await(t, "address", "without its address", func(s Session) bool {
		return errors.Is(s.Err, syscall.EADDRNOTAVAIL)
	})
	node.Watch("families", Target{Peer: netip.MustParseAddr("10.66.0.1"), Local: netip.MustParseAddr("fd66::1"),
		Settings: every(100 * time.Millisecond)})
	node.Watch("unused", Target{Settings: every(100 * time.Millisecond)})
	for _, name := range []string{"families", "unused"} {
		node.await(t, name, "without a way", func(s Session) bool {
			return s.Err != nil && strings.Contains(s.Err.Error(), "no way from ")
		})
		node.Leave(name)
	}
	node.await(t, "interface", "without its interface", func(s Session) bool {
		return s.Err != nil && strings.Contains(s.Err.Error(), `interface "late"`)
	})
	n.ip(t, n.router, "addr add 10.66.0.150/24 dev lan")
	for range 2 {
		n.ip(t, n.node, "addr add 10.66.0.50/24 dev lan")
		n.addLate(t)
		for _, name := range []string{"address", "interface"} {
			node.await(t, name, "up", func(s Session) bool { return s.State == bfd.Up && s.Err == nil })
		}
		n.ip(t, n.node, "addr del 10.66.0.50/24 dev lan", "link del late")
		for _, name := range []string{"address", "interface"} {
			node.await(t, name, "down with an error", func(s Session) bool { return s.State == bfd.Down && s.Err != nil })
		}
	}
}

// A passive session that waits for its peer detects that its interface was replaced.
func TestPassiveSessionStartsOnNewInterface(t *testing.T) {
	t.Parallel()
	n := newSite(t)
	node, router := n.run(t, n.node), n.run(t, n.router)
	n.addLate(t)
	passive := every(100 * time.Millisecond)
	passive.Passive = true
	node.Watch("peer", Target{Peer: netip.MustParseAddr("fe80::8%late"), Settings: passive})
	node.await(t, "peer", "started", func(s Session) bool { return s.Interval > 0 })
	n.ip(t, n.node, "link del late")
	n.addLate(t)
	router.Watch("peer", Target{Peer: netip.MustParseAddr("fe80::9%late"), Settings: every(100 * time.Millisecond)})
	node.awaitState(t, "peer", bfd.Up)
}

// The kernel has memory for a limited number of instructions in the filters of a socket, where the present one counts
// beside the next. If it has too little, a shorter filter that accepts more keeps the port open.
func TestFilterForWhichThereIsMemoryIsAttached(t *testing.T) {
	remotes := make([]remote, 20)
	for i := range remotes {
		remotes[i] = remote{addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), discriminator: 1, isUp: true, minTTL: 255}
	}
	filters := portFilters(0, remotes)
	exact, senders, all := len(filters[0]), len(filters[1]), len(filters[2])
	for memory, want := range map[int]int{2 * exact: exact, exact + all: exact, senders + all: senders, 2 * all: all} {
		var present int
		for range 3 {
			if err := attachBest(filters, func(filter []bpf.Instruction) error {
				if present+len(filter) > memory {
					return os.NewSyscallError("setsockopt", unix.ENOMEM)
				}
				present = len(filter)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if present != want {
				t.Errorf("with memory for %d instructions, a filter of %d is attached, want %d", memory, present, want)
			}
		}
	}
}
