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

// door is where the gobgp server of one session comes in, and nobody else: a listener on the host
// itself that is open for a second or two.
type door struct{ listener *net.TCPListener }

// inside is the address of a door.
func inside() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

func newDoor() (*door, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	l, err := c.Listen(context.Background(), "tcp4", netip.AddrPortFrom(inside(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("listen for the BGP server: %w", err)
	}
	return &door{l.(*net.TCPListener)}, nil
}

func (d *door) port() uint16 { return d.listener.Addr().(*net.TCPAddr).AddrPort().Port() }

func (d *door) close() { _ = d.listener.Close() } // It may be closed.

// admit waits for a time until a connection comes from this process, closes those that come from
// elsewhere, and shuts the door.
func (d *door) admit(within time.Duration) (*net.TCPConn, error) {
	defer d.close()
	if err := d.listener.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	for {
		conn, err := d.listener.AcceptTCP()
		if err != nil {
			return nil, err
		}
		own, err := isOwn(conn.RemoteAddr().(*net.TCPAddr).AddrPort(), conn.LocalAddr().(*net.TCPAddr).AddrPort())
		if own {
			return conn, nil
		}
		_ = conn.Close() // A stranger's.
		if err != nil {
			return nil, err
		}
	}
}

// isOwn tells whether this process has a socket with both addresses: no two have the same pair.
func isOwn(local, peer netip.AddrPort) (bool, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return false, fmt.Errorf("look for the end of a connection: %w", err)
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

// addrPort is that of a socket of IPv4, the zero AddrPort of others.
func addrPort(s unix.Sockaddr) netip.AddrPort {
	if v4, ok := s.(*unix.SockaddrInet4); ok {
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), uint16(v4.Port))
	}
	return netip.AddrPort{}
}
