// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

func testLog(t testing.TB) klog.Logger {
	return ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(0)))
}

// startSpeaker runs a speaker, and returns a function that waits until its states are as wanted.
func startSpeaker(t *testing.T) (s *Speaker, await func(done func([]State) bool) []State) {
	t.Helper()
	events, ended := make(chan struct{}, 1), make(chan struct{})
	s = New(Options{Notify: func() { signal(events) }})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), testLog(t)))
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s, func(done func([]State) bool) []State {
		t.Helper()
		for timeout := time.After(hostilePatience); ; {
			if is := s.States(); done(is) {
				return is
			}
			select {
			case <-events:
			case <-timeout:
				t.Fatalf("after %s: %+v", hostilePatience, s.States())
			}
		}
	}
}

// Eight peers that send nothing but an OPEN are changed in all ways and in random order. The speaker must come to rest.
// The test is for the race detector and for deadlocks.
func TestChurn(t *testing.T) {
	router, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	open, taken := openOf(t, 64512, 90, "192.0.2.2", both()...), atomic.Int64{}
	go func() {
		for conn, err := router.Accept(); err == nil; conn, err = router.Accept() {
			taken.Add(1)
			go func() {
				defer conn.Close()
				_, _ = conn.Write(open)
				_, _ = io.Copy(io.Discard, conn) // Until the speaker closes the connection.
			}()
		}
	}()
	var notified atomic.Int64
	s := New(Options{Notify: func() { notified.Add(1) }, DrainTime: time.Millisecond})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Background()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	random := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		var desired []bgp.Session
		for i := range 8 {
			if random.IntN(4) == 0 {
				continue
			}
			c := bgp.Session{Peer: fmt.Sprint(i), Leaving: random.IntN(8) == 0, Routes: map[netip.Prefix]bgp.Attributes{}}
			c.Neighbor = bgp.Neighbor{
				MyASN: 64500, PeerASN: 64512, Addr: netip.MustParseAddr("127.0.0.1"), Port: router.Addr().(*net.TCPAddr).AddrPort().
					Port(), RouterID: netip.MustParseAddr("192.0.2.1"),
				IPv4: true, IPv6: true, Connect: time.Duration(1+random.IntN(2)) * time.Second,
				GracefulRestart: random.IntN(2) == 0,
			}
			for r := range random.IntN(5) {
				a := netip.AddrFrom4([4]byte{203, 0, 113, byte(r)})
				c.Routes[netip.PrefixFrom(a, 32)] = bgp.Attributes{NextHop: c.Neighbor.RouterID, Prepend: uint8(random.IntN(3))}
			}
			desired = append(desired, c)
		}
		s.Set(desired)
		s.States()
		<-tick.C
	}
	s.Set(nil)
	deadline := time.After(30 * time.Second)
	for len(s.States()) > 0 {
		select {
		case <-deadline:
			t.Fatalf("sessions are left: %v", s.States())
		case <-tick.C:
		}
	}
	cancel()
	<-ended
	if n := taken.Load(); n < 8 {
		t.Errorf("%d connections, so that nothing was tried", n)
	}
	if notified.Load() == 0 {
		t.Error("no change was reported")
	}
	if len(s.idle) > 8 {
		t.Errorf("%d servers for 8 peers at most", len(s.idle))
	}
}

// A router that stops reading delays the end of a session by 4*cease at most. Without a hold time nothing else ends it.
func TestCloseDoesNotWaitForRouter(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	open, routers := openOf(t, 64512, 0, "192.0.2.2", both()...), make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = conn.Write(append(open, keepalive()...))
			_ = read(conn, packet.BGP_MSG_UPDATE) // gobgp has queued all routes then.
			routers <- conn
		}
	}()
	n, at := victim(), listener.Addr().(*net.TCPAddr).AddrPort()
	n.Addr, n.Port, n.Connect, n.Hold = at.Addr(), at.Port(), time.Second, 0
	routes := map[netip.Prefix]bgp.Attributes{} // 16 MB of UPDATEs, more than all buffers take
	for i := range uint32(5000) {
		communities := make([]uint32, 800)
		communities[0] = i
		a := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
		routes[netip.PrefixFrom(a, 32)] = bgp.Attributes{NextHop: n.RouterID, Communities: communities}
	}
	s, await := startSpeaker(t)
	s.Set([]bgp.Session{{Peer: "tor", Neighbor: n, Routes: routes}})
	await(func(is []State) bool { return is[0].Phase == Established })
	select {
	case router := <-routers:
		t.Cleanup(func() { _ = router.Close() }) // A session that waits for it ends then.
	case <-time.After(hostilePatience):
		t.Fatal("the router received no UPDATE")
	}
	s.Set(nil)
	await(func(is []State) bool { return len(is) == 0 })
}
