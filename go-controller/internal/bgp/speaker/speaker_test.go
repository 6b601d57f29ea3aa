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
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

func testLog(t testing.TB) klog.Logger {
	return ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(0)))
}

// startSpeaker runs a speaker, and returns a function that waits until its states are as wanted.
func startSpeaker(t *testing.T) (s *Speaker, awaitStates func(what string, done func([]State) bool) []State) {
	t.Helper()
	ended := make(chan struct{})
	s = New(Options{})
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), testLog(t)))
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() {
		closeAll(t, s)
		cancel()
		<-ended
	})
	return s, func(what string, done func([]State) bool) (is []State) {
		t.Helper()
		await.NoError(t, what, func(context.Context) error {
			if is = s.States(); !done(is) {
				return fmt.Errorf("states %+v", is)
			}
			return nil
		})
		return is
	}
}

// closeAll closes all sessions, which Run leaves to the end of the process.
func closeAll(t testing.TB, s *Speaker) {
	t.Helper()
	s.Set(nil)
	await.NoError(t, "no session is left", func(context.Context) error {
		if left := s.States(); len(left) > 0 {
			return fmt.Errorf("%+v", left)
		}
		return nil
	})
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
	const peers = 8
	for range 100 {
		var desired []bgp.Session
		for i := range peers {
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
		<-time.After(time.Duration(random.IntN(20)) * time.Millisecond) // so that changes meet sessions in all phases
	}
	await.True(t, "sessions have been opened and reported", func() bool {
		return taken.Load() >= peers && notified.Load() > 0
	})
	closeAll(t, s)
	cancel()
	<-ended
}

// A router that stops reading delays the end of a session by 3*cease at most. Without a hold time nothing else ends it.
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
			_ = read(conn, packet.BGP_MSG_UPDATE) // The next ones fill all buffers.
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
	s, awaitStates := startSpeaker(t)
	s.Set([]bgp.Session{{Peer: "tor", Neighbor: n, Routes: routes}})
	awaitStates("Established", func(is []State) bool { return is[0].Phase == Established })
	stuck := await.Receive(t, "the router has received an UPDATE", routers)
	t.Cleanup(func() { _ = stuck.Close() }) // A session that waits for it ends then.
	s.Set(nil)
	awaitStates("no session is left", func(is []State) bool { return len(is) == 0 })
}
