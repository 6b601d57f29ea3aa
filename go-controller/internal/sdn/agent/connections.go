// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// fairListener limits the number of open connections. One more closes the oldest one of the source address that has the
// most. Connections that stay open therefore keep no other client from being answered, not even one with the same
// address: the controller's are new, and end within milliseconds. IPv6 addresses are not grouped by prefix, because
// nodes share one.
type fairListener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*fairConn // oldest first
}

// fairConn is a connection that a fairListener has accepted.
type fairConn struct {
	net.Conn
	listener *fairListener
	source   netip.Addr
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &fairConn{Conn: conn, listener: l}
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		c.source = at.Addr().Unmap()
	}
	if displaced := l.add(c); displaced != nil {
		_ = displaced.Close()
	}
	return c, nil
}

// add records a connection, and returns the one to close for it, or nil.
func (l *fairListener) add(c *fairConn) *fairConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) <= l.most {
		return nil
	}
	counts, most := map[netip.Addr]int{}, 0
	for _, c := range l.open {
		counts[c.source]++
		most = max(most, counts[c.source])
	}
	return l.open[slices.IndexFunc(l.open, func(c *fairConn) bool { return counts[c.source] == most })]
}

// Close implements net.Conn.
func (c *fairConn) Close() error {
	l := c.listener
	l.mu.Lock()
	l.open = slices.DeleteFunc(l.open, func(other *fairConn) bool { return other == c })
	l.mu.Unlock()
	return c.Conn.Close()
}
