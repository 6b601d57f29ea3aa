// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// listener accepts the connection of the gobgp server of one session, and no other. It listens on a loopback address
// and is open for a second or two.
type listener struct{ accepted *net.TCPListener }

// loopback returns the address that a listener listens on.
func loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

func newListener() (*listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	l, err := c.Listen(context.Background(), "tcp4", netip.AddrPortFrom(loopback(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("listen for the BGP server: %w", err)
	}
	return &listener{l.(*net.TCPListener)}, nil
}

func (d *listener) port() uint16 { return d.accepted.Addr().(*net.TCPAddr).AddrPort().Port() }

func (d *listener) close() { _ = d.accepted.Close() } // It may already be closed.

// accept waits until this process connects or the time is over. It closes connections from other processes, and then
// the listener.
func (d *listener) accept(timeout time.Duration) (*net.TCPConn, error) {
	defer d.close()
	if err := d.accepted.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	for {
		conn, err := d.accepted.AcceptTCP()
		if err != nil {
			return nil, err
		}
		own, err := isOwn(conn.RemoteAddr().(*net.TCPAddr).AddrPort(), conn.LocalAddr().(*net.TCPAddr).AddrPort())
		if own {
			return conn, nil
		}
		_ = conn.Close() // It is from another process.
		if err != nil {
			return nil, err
		}
	}
}

// isOwn reports whether this process has a socket with both addresses. No two sockets have the same pair.
func isOwn(local, peer netip.AddrPort) (bool, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return false, fmt.Errorf("find the socket of a connection: %w", err)
	}
	for _, file := range files {
		fd, err := strconv.Atoi(file.Name())
		if err != nil {
			continue
		}
		a, errA := unix.Getsockname(fd)
		b, errB := unix.Getpeername(fd)
		if errors.Join(errA, errB) == nil && addrPort(a) == local && addrPort(b) == peer {
			return true, nil
		}
	}
	return false, nil
}

// addrPort returns the address and port of an IPv4 socket, the zero AddrPort for others.
func addrPort(s unix.Sockaddr) netip.AddrPort {
	if v4, ok := s.(*unix.SockaddrInet4); ok {
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), uint16(v4.Port))
	}
	return netip.AddrPort{}
}
