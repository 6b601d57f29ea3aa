// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// listenUnread listens on an address for connections whose kernel takes only a few octets that are not read.
func listenUnread(t *testing.T, at string) net.Listener {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
		}); failed != nil {
			return failed
		}
		return err
	}}
	listener, err := config.Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// The kernel takes our writes although the router reads nothing, and answers its probes for free space. The session
// ends all the same, also if the router offers no hold time.
func TestSessionEndsIfTheRoutersKernelAcceptsNothing(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener := listenUnread(t, at)
		greeting, unread := append(openOf(t, 64512, 0, "192.0.2.2", both()...), keepalive()...), make(chan net.Conn, 16)
		go func() {
			for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
				_, _ = conn.Write(greeting)
				unread <- conn
			}
		}()
		n, router := victim(), listener.Addr().(*net.TCPAddr).AddrPort()
		n.Addr, n.Port, n.Connect, n.Hold = router.Addr(), router.Port(), time.Second, 3*time.Second
		routes := map[netip.Prefix]bgp.Attributes{}
		for i := range uint32(5000) { // 25 kB, less than our kernel takes
			a := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
			routes[netip.PrefixFrom(a, 32)] = bgp.Attributes{NextHop: n.RouterID}
		}
		s, awaitStates := startSpeaker(t)
		s.Set([]bgp.Session{{Peer: "tor", Neighbor: n, Routes: routes}})
		awaitStates("all routes are written", func(is []State) bool { return is[0].IPv4 == len(routes) })
		lost := awaitStates("the session ends", func(is []State) bool { return is[0].Phase != Established })[0]
		const want = "send hold timer expired: the peer accepted no data for the hold time of 3s"
		if !strings.HasPrefix(lost.LastError, want) || lost.NotificationsSent != 0 || lost.Pending != len(routes) {
			t.Errorf("%s: %+v, want the error %q", at, lost, want)
		}
	}
}
