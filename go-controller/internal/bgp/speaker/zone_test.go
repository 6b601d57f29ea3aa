// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func TestWithInterfaceIndexSetsTheIndexAsZone(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"fe80::1%lo": "fe80::1%" + strconv.Itoa(lo.Index), "2001:db8::1": "2001:db8::1", "192.0.2.1": "192.0.2.1",
		"169.254.1.1": "169.254.1.1",
	} {
		if got, err := withInterfaceIndex(netip.MustParseAddr(in)); err != nil || got.String() != want {
			t.Errorf("%s becomes %s (%v), want %s", in, got, err, want)
		}
	}
	_, err = withInterfaceIndex(netip.MustParseAddr("fe80::1%absent0"))
	if err == nil || !strings.Contains(err.Error(), "absent0") {
		t.Errorf("an absent interface: %v, want an error that names it", err)
	}
}

func TestErrorsAndLocalAddressesNameTheInterface(t *testing.T) {
	n := victim()
	n.Port = 1
	_, err := dial(t.Context(), target{neighbor: n, addr: netip.MustParseAddr("fe80::1%lo")}, &sockets{})
	if !strings.Contains(fmt.Sprint(err), "[fe80::1%lo]:1") {
		t.Errorf("error %v, want the zone lo in it", err)
	}
	// The zone of an address that net returns is from its cache.
	conn := cachedConn{net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[fe80::2%old0]:179"))}
	if got := localOf(conn, "lo"); got != netip.MustParseAddr("fe80::2%lo") {
		t.Errorf("local address %s", got)
	}
}

type cachedConn struct{ *net.TCPAddr }

func (c cachedConn) LocalAddr() net.Addr { return c.TCPAddr }
