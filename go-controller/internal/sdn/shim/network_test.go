// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/memnet"
)

// network connects a dataplane to agents in the memory of the test, so that no time passes but that of synctest.
type network struct {
	mu        sync.Mutex
	listeners map[string]*memnet.Listener
	last      netip.AddrPort
}

func newNetwork() *network {
	return &network{listeners: map[string]*memnet.Listener{}, last: netip.MustParseAddrPort("198.51.100.0:9484")}
}

// listen returns the listener at another address, which is closed at the end of the test.
func (n *network) listen(t *testing.T) (netip.AddrPort, net.Listener) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = netip.AddrPortFrom(n.last.Addr().Next(), n.last.Port())
	l := memnet.Listen()
	n.listeners[n.last.String()] = l
	t.Cleanup(func() { _ = l.Close() })
	return n.last, l
}

// serve starts a server of health checks, which ends with the test.
func (n *network) serve(t *testing.T, agent healthpb.HealthServer) netip.AddrPort {
	t.Helper()
	at, listener := n.listen(t)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, agent)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return at
}

// dial is a dialer.
func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	return l.Dial(ctx, netip.AddrPort{})
}
