// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// sockaddr converts an address and a port for the kernel. The zero Addr means any address.
func sockaddr(a netip.Addr, k kind, port uint16, device int) unix.Sockaddr {
	if k&overIPv6 == 0 {
		sa := &unix.SockaddrInet4{Port: int(port)}
		if a.IsValid() {
			sa.Addr = a.As4()
		}
		return sa
	}
	sa := &unix.SockaddrInet6{Port: int(port)}
	if a.IsValid() {
		sa.Addr = a.As16()
	}
	if a.IsLinkLocalUnicast() {
		sa.ZoneId = uint32(device)
	}
	return sa
}

// udp opens a UDP socket for a kind.
func udp(k kind) (int, error) {
	family := unix.AF_INET
	if k&overIPv6 != 0 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if k&overIPv6 != 0 {
		err = set(fd, option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1})
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return -1, err
	}
	return fd, nil
}

// option is a socket option.
type option struct{ level, name, value int }

func set(fd int, options ...option) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("setsockopt level %d option %d: %w", o.level, o.name, err)
		}
	}
	return nil
}
