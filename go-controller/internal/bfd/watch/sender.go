// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// Source ports of RFC 5881 section 4. Each session of the system has its own.
	firstSource, sources = 49152, 1 << 14
	// mostHops is the TTL of every packet sent (RFC 5881 section 5).
	mostHops = 255
	// networkControl is the traffic class CS6 (RFC 4594 section 3.1).
	networkControl = 48 << 2
)

// sender is the socket that a session uses to send.
type sender struct {
	// fd is -1 while there is none.
	fd int
	// source is the port, which is kept when the socket is reopened; 0 before the first time.
	source uint16
	// device is the index of the target's interface; 0 if the target has none, -1 if the system has no interface of
	// that name.
	device int
	to     unix.Sockaddr
}

// open opens the socket with a source port that none of our other sessions uses.
func (s *sender) open(t Target, k kind, claimed func(uint16) bool) error {
	if s.source != 0 {
		return s.reopen(t, k)
	}
	from := rand.IntN(sources)
	for i := range sources {
		source := uint16(firstSource + (from+i)%sources)
		if claimed(source) {
			continue
		}
		s.source = source
		err := s.reopen(t, k)
		if err == nil {
			return nil
		}
		s.source = 0
		if !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return fmt.Errorf("send BFD to %s: no source port from %d to %d is free", t.Peer, firstSource, firstSource+sources-1)
}

// reopen opens the socket with the source port of the session.
func (s *sender) reopen(t Target, k kind) error {
	fd, err := s.socket(t, k)
	if err != nil {
		return fmt.Errorf("send BFD to %s: %w", t.Peer, err)
	}
	s.fd = fd
	return nil
}

func (s *sender) socket(t Target, k kind) (int, error) {
	if !t.Peer.IsValid() || t.Local.IsValid() && t.Local.Is4() != t.Peer.Is4() {
		return -1, fmt.Errorf("no way from %s to %s", t.Local, t.Peer)
	}
	s.device = 0
	if t.Interface != "" {
		s.device = -1
		dev, err := net.InterfaceByName(t.Interface)
		if err != nil {
			return -1, fmt.Errorf("interface %q: %w", t.Interface, err)
		}
		s.device = dev.Index
	}
	fd, err := udp(k)
	if err != nil {
		return -1, err
	}
	options := []option{{unix.IPPROTO_IP, unix.IP_TTL, mostHops}, {unix.IPPROTO_IP, unix.IP_TOS, networkControl}}
	if k&overIPv6 != 0 {
		options = []option{{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, mostHops},
			{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, networkControl}}
	}
	// Nothing is read from this socket. Packets sent to it must not use memory.
	err = set(fd, append(options, option{unix.SOL_SOCKET, unix.SO_RCVBUF, 0})...)
	if err == nil && t.Interface != "" {
		err = os.NewSyscallError("setsockopt SO_BINDTODEVICE", unix.BindToDevice(fd, t.Interface))
	}
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, sockaddr(t.Local, k, s.source, s.device)))
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return -1, err
	}
	s.to = sockaddr(t.Peer, k, k.port(), s.device)
	return fd, nil
}

func (s *sender) write(b []byte) error {
	return os.NewSyscallError("sendto", unix.Sendto(s.fd, b, unix.MSG_DONTWAIT, s.to))
}

func (s *sender) close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd) // all packets have been sent
	}
	s.fd = -1
}

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
