// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// Messages are sent with a DSCP that networks do not drop first, as RFC 4271 wants it (appendix E).
func TestMessagesAreNetworkControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at            string
		level, option int
	}{{"127.0.0.1:0", unix.IPPROTO_IP, unix.IP_TOS}, {"[::1]:0", unix.IPPROTO_IPV6, unix.IPV6_TCLASS}} {
		router, err := net.Listen("tcp", c.at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = router.Close() })
		at := netip.MustParseAddrPort(router.Addr().String())
		to := target{neighbor: bgp.Neighbor{Addr: at.Addr(), Port: at.Port()}, addr: at.Addr()}
		conn, err := dial(t.Context(), to, &sockets{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		class := 0
		if failed := raw.Control(func(fd uintptr) {
			class, err = unix.GetsockoptInt(int(fd), c.level, c.option)
		}); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		if class != 0xc0 {
			t.Errorf("%s: traffic class %#x, want 0xc0 (CS6)", c.at, class)
		}
	}
}
