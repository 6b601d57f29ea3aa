// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"net/netip"
	"testing"
)

// limited is a Listener, and the connections of a test by name.
type limited struct {
	*testing.T
	*Listener
	conns map[string]*conn
}

// open opens a connection from an address, and checks which one is closed for it, empty for none.
func (l *limited) open(name, source, displaced string) {
	l.Helper()
	end, other := net.Pipe()
	l.Cleanup(func() { _ = other.Close() })
	l.conns[name] = &conn{Conn: end, listener: l.Listener, source: netip.MustParseAddr(source)}
	got := l.add(l.conns[name])
	if got != l.conns[displaced] {
		l.Errorf("%s from %s closes %+v, want %q", name, source, got, displaced)
	}
	if got != nil {
		_ = got.Close()
	}
	if len(l.Listener.open) > l.most {
		l.Errorf("%d connections are open, want %d", len(l.Listener.open), l.most)
	}
}

// A connection in excess closes the oldest one of the source that has the most.
func TestDisplacedConnection(t *testing.T) {
	l := &limited{t, New(nil, 3), map[string]*conn{}}
	l.open("a1", "192.0.2.1", "")
	l.open("b1", "2001:db8::2", "")
	l.open("a2", "192.0.2.1", "")
	l.open("c1", "192.0.2.3", "a1")
	l.open("b2", "2001:db8::2", "b1")
	l.open("d1", "2001:db8::4", "a2") // all have one
	l.open("d2", "2001:db8::4", "d1") // its own
}

// A trusted connection stays. No more than half of the connections are trusted, so that new clients are served.
func TestTrustedConnectionIsNotDisplaced(t *testing.T) {
	l := &limited{t, New(nil, 4), map[string]*conn{}}
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		l.open(name, "192.0.2.1", "")
	}
	for _, name := range []string{"a1", "a1", "a2", "a3"} {
		Trust(l.conns[name])
	}
	l.open("b1", "192.0.2.2", "a3")
	l.open("c1", "192.0.2.3", "a4") // not a1, the oldest one of the source that has the most
	_ = l.conns["a1"].Close()
	_ = l.conns["a1"].Close()
	Trust(l.conns["a3"]) // it is closed
	Trust(l.conns["b1"])
	Trust(l.conns["c1"]) // a2 and b1 are half
	l.open("d1", "192.0.2.4", "")
	l.open("e1", "192.0.2.5", "c1")
}
