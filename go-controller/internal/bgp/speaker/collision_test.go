// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"net/netip"
	"sync"
	"testing"

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
