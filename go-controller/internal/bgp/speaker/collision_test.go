// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// follow makes sockets known until the end of the test.
func follow(t *testing.T, ended func(socket)) *sockets {
	t.Helper()
	known := &sockets{}
	events, err := known.subscribe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var following sync.WaitGroup
	following.Go(func() {
		if err := known.watch(ctx, events, ended); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		following.Wait()
	})
	return known
}

// listen returns a router that accepts connections, and a target for it.
func listen(t *testing.T, at string) (net.Listener, target) {
	t.Helper()
	router, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	addr := netip.MustParseAddrPort(router.Addr().String())
	return router, target{neighbor: bgp.Neighbor{Addr: addr.Addr(), Port: addr.Port()}, addr: addr.Addr()}
}

// A connection of this process that is closed while it is looked for is not one of another speaker.
func TestOwnConnectionIsNoCollision(t *testing.T) {
	t.Parallel()
	router, to := listen(t, "127.0.0.1:0")
	go func() {
		for {
			conn, err := router.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	known := follow(t, func(s socket) {
		if s.connects(to.addr, to) {
			t.Errorf("not known as a socket of this process: %+v", s)
		}
	})
	if err := known.setPorts([]uint16{to.neighbor.Port}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var dials sync.WaitGroup
	dials.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			conn, err := dial(t.Context(), to, known)
			if errors.As(err, &errClosed{}) {
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.SetLinger(0) // No port stays in use.
			_ = conn.Close()
		}
	})
	const looks = 100
	for range looks {
		if ending, err := collision(to, known); err != nil || len(ending) > 0 {
			t.Error(ending, err)
			break
		}
	}
	close(stop)
	dials.Wait()
}

// The kernel reports sockets that have ended, with what the router has received, on the ports of routers only.
func TestSocketsThatEnd(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		router, to := listen(t, at)
		other, _ := listen(t, at)
		reported := make(chan socket, 16)
		known := follow(t, func(s socket) { reported <- s })
		if err := known.setPorts([]uint16{179, to.neighbor.Port}); err != nil {
			t.Fatal(err)
		}
		const opened = opens + 1
		for _, l := range []net.Listener{other, router} {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if list := known.others(to.addr, to); l == router && (len(list) != 1 || !list[0].established) {
				t.Errorf("%s: sockets %+v before the end", at, list)
			}
			if _, err := conn.Write(make([]byte, opened)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(accepted, make([]byte, opened)); err != nil {
				t.Fatal(err)
			}
			_ = accepted.Close()
			_ = conn.Close()
		}
		s := await.Receive(t, "a socket has ended", reported)
		if s.established || !s.connects(to.addr, to) || s.cookie == 0 || s.acked != opened+2 { // SYN, FIN
			t.Errorf("%s: %+v", at, s)
		}
		if list := known.others(to.addr, to); len(list) != 0 {
			t.Errorf("%s: sockets %+v after the end", at, list)
		}
	}
}

// A session ends when another speaker of the node has failed to open one between the same addresses, and is not opened
// again. A connection on which nothing was sent is not one of a speaker.
func TestSessionGivesWay(t *testing.T) {
	t.Parallel()
	router, to := listen(t, "127.0.0.1:0")
	accepted := make(chan net.Conn, 16)
	go func() {
		for conn, err := router.Accept(); err == nil; conn, err = router.Accept() {
			accepted <- conn
		}
	}()
	s, awaitStates := startSpeaker(t)
	n := victim()
	n.Addr, n.Port, n.Connect = to.addr, to.neighbor.Port, time.Second
	s.Set([]bgp.Session{{Peer: "tor", Neighbor: n}})
	session := await.Receive(t, "the session is dialed", accepted)
	if _, err := session.Write(append(openOf(t, uint16(n.PeerASN), 90, "192.0.2.2"), keepalive()...)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, session); _ = session.Close() }()
	awaitStates("the session is Established", func(all []State) bool { return all[0].Phase == Established })

	attempt := func(sends []byte) {
		t.Helper()
		conn, err := net.Dial("tcp", router.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		there := await.Receive(t, "another speaker dials", accepted)
		if _, err := conn.Write(sends); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(there, make([]byte, len(sends))); err != nil {
			t.Fatal(err)
		}
		_ = there.Close()
		_ = conn.Close()
	}
	attempt(nil)
	attempt(openOf(t, uint16(n.PeerASN), 90, "192.0.2.3"))
	before := awaitStates("the session gives way", func(all []State) bool { return all[0].Phase == Active })[0]
	if want := "tries to open a session from 127.0.0.1 to 127.0.0.1"; !strings.Contains(before.LastError, want) {
		t.Errorf("last error %q, want %q", before.LastError, want)
	}
	awaitStates("an attempt is due again", func(all []State) bool {
		return all[0].LastErrorTime.After(before.LastErrorTime)
	})
	if n := len(accepted); n > 0 {
		t.Errorf("dialed %d times meanwhile", n)
	}
}

// What another speaker's connections mean depends on the state of ours.
func TestContends(t *testing.T) {
	t.Parallel()
	to := target{neighbor: bgp.Neighbor{Port: 179, Source: netip.MustParseAddr("10.0.0.2")},
		addr: netip.MustParseAddr("10.0.0.1")}
	c := socket{local: netip.MustParseAddrPort("10.0.0.2:40000"), peer: netip.MustParseAddrPort("10.0.0.1:179"), cookie: 7}
	established := func() *peer {
		return &peer{session: &session{target: to, seen: connState{local: to.neighbor.Source}}}
	}
	gaveWay := func(local netip.Addr, ago time.Duration) *peer {
		return &peer{gaveWay: contention{local, to.addr, time.Now().Add(-ago)}}
	}
	older := established()
	older.ending = []uint64{7}
	for name, p := range map[string]struct {
		*peer
		want bool
	}{
		"in our session":              {established(), true},
		"it was there before":         {older, false},
		"no session of ours":          {&peer{}, false},
		"we gave way":                 {gaveWay(to.neighbor.Source, 0), true},
		"we gave way a long time ago": {gaveWay(to.neighbor.Source, givenWay), false},
		"with another sourceAddress":  {gaveWay(netip.MustParseAddr("10.0.0.3"), 0), false},
	} {
		if is := p.collides(c, to); is != p.want {
			t.Errorf("%s: %v, want %v", name, is, p.want)
		}
	}
}

// A connection is another session between the addresses of a target whichever side has opened it, and for link-local
// addresses only on the interface of the target: routers have the same one on each of their VLANs.
func TestConnectionsOfASession(t *testing.T) {
	t.Parallel()
	dev, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	const router, other, ephemeral = 179, 1790, 40000
	connection := func(local string, localPort uint16, peer string, peerPort uint16, device int) socket {
		return socket{local: netip.AddrPortFrom(netip.MustParseAddr(local), localPort),
			peer: netip.AddrPortFrom(netip.MustParseAddr(peer), peerPort), device: uint32(device)}
	}
	for name, c := range map[string]struct {
		to, local string
		socket    socket
		want      bool
	}{
		"opened here":          {"10.0.0.1", "10.0.0.2", connection("10.0.0.2", ephemeral, "10.0.0.1", router, 0), true},
		"opened by the router": {"10.0.0.1", "10.0.0.2", connection("10.0.0.2", router, "10.0.0.1", ephemeral, 0), true},
		"no BGP":               {"10.0.0.1", "10.0.0.2", connection("10.0.0.2", ephemeral, "10.0.0.1", other, 0), false},
		"another source":       {"10.0.0.1", "10.0.0.2", connection("10.0.0.3", ephemeral, "10.0.0.1", router, 0), false},
		"another router":       {"10.0.0.1", "10.0.0.2", connection("10.0.0.2", ephemeral, "10.0.0.9", router, 0), false},
		"link-local": {"fe80::1%lo", "fe80::2%lo", connection("fe80::2", ephemeral, "fe80::1", router, dev.Index),
			true},
		"link-local elsewhere": {"fe80::1%lo", "fe80::2%lo", connection("fe80::2", ephemeral, "fe80::1", router, dev.Index+1),
			false},
	} {
		to := target{neighbor: bgp.Neighbor{Port: router}, addr: netip.MustParseAddr(c.to)}
		if is := c.socket.connects(netip.MustParseAddr(c.local), to); is != c.want {
			t.Errorf("%s: %v, want %v", name, is, c.want)
		}
	}
}

// The kernel lists only connections of BGP between the addresses. A node may have 100,000 others, most of them in
// TIME_WAIT, also with a router.
func TestKernelListsOnlyConnectionsOfTheTarget(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		router, to := listen(t, at)
		other, _ := listen(t, at)
		list := func(to target) (all []socket) {
			t.Helper()
			if err := listSockets(to.addr, to, func(s socket) { all = append(all, s) }); err != nil {
				t.Error(err)
			}
			return all
		}
		var dialed []net.Conn
		for _, l := range []net.Listener{router, other} {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = accepted.Close() })
			dialed = append(dialed, conn, accepted)
		}
		if all := list(to); len(all) != 1 || !all[0].connects(to.addr, to) || !all[0].established {
			t.Errorf("%s: %+v", at, all)
		}
		elsewhere := to
		if elsewhere.addr = netip.MustParseAddr("127.0.0.2"); to.addr.Is6() {
			elsewhere.addr = netip.MustParseAddr("fd00::1")
		}
		if all := list(elsewhere); len(all) != 0 {
			t.Errorf("%s: another router: %+v", at, all)
		}
		for _, conn := range dialed { // This side first: it is in TIME_WAIT then.
			_ = conn.Close()
		}
		await.True(t, "the connection is not listed", func() bool { return len(list(to)) == 0 })
	}
}
