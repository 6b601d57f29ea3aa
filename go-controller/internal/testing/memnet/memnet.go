// SPDX-License-Identifier: Apache-2.0

// Package memnet connects clients to servers in the memory of a test, so that no time passes in a bubble of
// testing/synctest but virtual time.
//
// The package bufconn of gRPC is not used for it: it starts timers that expire at once, and the race detector crashes
// when two of them run at the same time in one bubble (Go 1.26).
package memnet

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// backlog is how many connections wait for Accept. Further clients wait.
const backlog = 1000

// Listener is a listener for connections in memory. It implements net.Listener.
type Listener struct {
	waiting chan net.Conn
	closed  chan struct{}
	close   func()
}

// Listen returns a listener, which has no address.
func Listen() *Listener {
	l := &Listener{waiting: make(chan net.Conn, backlog), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// conn is the server's end of a connection.
type conn struct {
	net.Conn
	source netip.AddrPort
}

func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.source) }

// Dial connects a client with this source to the server. It returns net.ErrClosed once the listener is closed, and
// the error of the context if no server accepts the connection before it ends.
func (l *Listener) Dial(ctx context.Context, source netip.AddrPort) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case l.waiting <- &conn{server, source}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It may be called several times.
func (l *Listener) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{} }
