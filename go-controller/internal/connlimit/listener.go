// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Listener limits the number of open connections. One more closes the oldest one of the source address that has the
// most. Connections that stay open therefore keep no other client from being served, not even one with the same
// address, whose connections are new. IPv6 addresses are not grouped by prefix, because nodes share one.
type Listener struct {
	net.Listener
	most int

	mu      sync.Mutex
	open    []*conn // oldest first
	trusted int     // how many of them are trusted
}

// conn is a connection that a Listener has accepted.
type conn struct {
	net.Conn
	listener *Listener
	source   netip.Addr
	// trusted is guarded by the listener's mutex.
	trusted bool
}

// New returns a Listener of which at most the given number of connections are open.
func New(l net.Listener, most int) *Listener { return &Listener{Listener: l, most: most} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	if at, err := netip.ParseAddrPort(accepted.RemoteAddr().String()); err == nil {
		c.source = at.Addr().Unmap()
	}
	if displaced := l.add(c); displaced != nil {
		_ = displaced.Close()
	}
	return c, nil
}

// Trust marks a connection that a Listener has accepted as one of a client that has proved that it may use the server:
// it is not closed for others. Half of the connections remain for other clients.
func Trust(accepted net.Conn) {
	c, ok := accepted.(*conn)
	if !ok {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.trusted && l.trusted < l.most/2 && slices.Contains(l.open, c) {
		c.trusted = true
		l.trusted++
	}
}

// add records a connection, and returns the one to close for it, or nil.
func (l *Listener) add(c *conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) <= l.most {
		return nil
	}
	counts, most := map[netip.Addr]int{}, 0
	for _, c := range l.open {
		if !c.trusted {
			counts[c.source]++
			most = max(most, counts[c.source])
		}
	}
	return l.open[slices.IndexFunc(l.open, func(c *conn) bool { return !c.trusted && counts[c.source] == most })]
}

// Close implements net.Conn.
func (c *conn) Close() error {
	l := c.listener
	l.mu.Lock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
		if c.trusted {
			l.trusted--
		}
	}
	l.mu.Unlock()
	return c.Conn.Close()
}
