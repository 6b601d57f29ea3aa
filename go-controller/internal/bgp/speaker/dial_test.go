// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
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

// The kernel reports no end of a socket that failed before it had a peer. Its cookie is not kept, however often an
// address is tried that the node does not have.
func TestFailedDialsLeaveNoSockets(t *testing.T) {
	t.Parallel()
	known := &sockets{}
	if _, err := known.subscribe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(known.unsubscribe)
	to := target{neighbor: bgp.Neighbor{Source: netip.MustParseAddr("192.0.2.1"), Port: 179},
		addr: netip.MustParseAddr("127.0.0.1")}
	for range 3 {
		if conn, err := dial(t.Context(), to, known); err == nil {
			t.Fatal(conn.Close(), "connected from an address of another host")
		}
	}
	if len(known.own) == 0 {
		t.Error("a socket is not known after it has ended: a list of sockets may be older")
	}
	known.ended(0, time.Now().Add(2*remembered)) // another socket
	if len(known.own) != 0 {
		t.Errorf("sockets %v are kept", known.own)
	}
}

// The address of another host as sourceAddress is no fault of the router.
func TestDialFromAnAddressOfAnotherHostIsUnreachable(t *testing.T) {
	t.Parallel()
	to := target{neighbor: bgp.Neighbor{Source: netip.MustParseAddr("192.0.2.1"), Port: 179},
		addr: netip.MustParseAddr("127.0.0.1")}
	conn, err := dial(t.Context(), to, &sockets{})
	if err == nil {
		t.Fatal(conn.Close(), "connected from an address of another host")
	}
	if about := dialReason(err).about; about != v1alpha1.BGPErrorUnreachable {
		t.Errorf("%q is about %q, want %q", err, about, v1alpha1.BGPErrorUnreachable)
	}
}
