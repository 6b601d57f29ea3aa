// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// A connection of this process that is closed while it is looked for is not one of another speaker.
func TestOwnConnectionIsNoCollision(t *testing.T) {
	t.Parallel()
	router, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	go func() {
		for {
			conn, err := router.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	at := netip.MustParseAddrPort(router.Addr().String())
	to := target{neighbor: bgp.Neighbor{Addr: at.Addr(), Port: at.Port()}, addr: at.Addr(), local: at.Addr()}
	stop := make(chan struct{})
	var dials sync.WaitGroup
	dials.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			conn, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(at))
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
		if err := collision(to); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	dials.Wait()
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
	socket := func(local string, localPort uint16, peer string, peerPort uint16, device int) *netlink.Socket {
		return &netlink.Socket{State: tcpEstablished, ID: netlink.SocketID{SourcePort: localPort, DestinationPort: peerPort,
			Source: netip.MustParseAddr(local).AsSlice(), Destination: netip.MustParseAddr(peer).AsSlice(),
			Interface: uint32(device)}}
	}
	for name, c := range map[string]struct {
		to, local string
		socket    *netlink.Socket
		want      bool
	}{
		"opened here":          {"10.0.0.1", "10.0.0.2", socket("10.0.0.2", ephemeral, "10.0.0.1", router, 0), true},
		"opened by the router": {"10.0.0.1", "10.0.0.2", socket("10.0.0.2", router, "10.0.0.1", ephemeral, 0), true},
		"no BGP":               {"10.0.0.1", "10.0.0.2", socket("10.0.0.2", ephemeral, "10.0.0.1", other, 0), false},
		"another source":       {"10.0.0.1", "10.0.0.2", socket("10.0.0.3", ephemeral, "10.0.0.1", router, 0), false},
		"another router":       {"10.0.0.1", "10.0.0.2", socket("10.0.0.2", ephemeral, "10.0.0.9", router, 0), false},
		"link-local": {"fe80::1%lo", "fe80::2%lo", socket("fe80::2", ephemeral, "fe80::1", router, dev.Index),
			true},
		"link-local elsewhere": {"fe80::1%lo", "fe80::2%lo", socket("fe80::2", ephemeral, "fe80::1", router, dev.Index+1),
			false},
	} {
		to := target{neighbor: bgp.Neighbor{Port: router}, addr: netip.MustParseAddr(c.to)}
		if is := connects(c.socket, netip.MustParseAddr(c.local), to); is != c.want {
			t.Errorf("%s: %v, want %v", name, is, c.want)
		}
	}
}
