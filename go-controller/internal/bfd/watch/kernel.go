// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mostHops is the TTL of every packet sent (RFC 5881 section 5).
	mostHops = 255
	// networkControl is the traffic class CS6 (RFC 4594 section 3.1).
	networkControl = 48 << 2
	// atOnce limits the packets read from a socket in one iteration, so that a flood of packets can't prevent sending.
	atOnce = 256
)

// kernel is the network of the thread's network namespace.
type kernel struct {
	// wakeup is an eventfd(2).
	wakeup int
	// ports are the open ports by kind; nil if not open.
	ports [kinds]*kernelPort
}

func newKernel() (network, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &kernel{wakeup: fd}, nil
}

// wake implements network.
func (n *kernel) wake() {
	_, _ = unix.Write(n.wakeup, binary.NativeEndian.AppendUint64(nil, 1)) // fails after 2^64 unread wakeups
}

// wait implements network.
func (n *kernel) wait(until time.Time) error {
	fds := []unix.PollFd{{Fd: int32(n.wakeup), Events: unix.POLLIN}}
	for _, p := range n.ports {
		if p != nil {
			for _, fd := range p.fds {
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
		}
	}
	var timeout *unix.Timespec
	if !until.IsZero() {
		t := unix.NsecToTimespec(max(time.Until(until), 0).Nanoseconds())
		timeout = &t
	}
	if _, err := unix.Ppoll(fds, timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("ppoll", err)
	}
	_, _ = unix.Read(n.wakeup, make([]byte, 8)) // fails if there was no wakeup
	return nil
}

func (n *kernel) close() { _ = unix.Close(n.wakeup) }

// dial implements network.
func (n *kernel) dial(t Target, k kind, source uint16) (way transmitter, device int, err error) {
	if !t.Peer.IsValid() || t.Local.IsValid() && t.Local.Is4() != t.Peer.Is4() {
		return nil, 0, fmt.Errorf("no way from %s to %s", t.Local, t.Peer)
	}
	if t.Interface != "" {
		dev, err := net.InterfaceByName(t.Interface)
		if err != nil {
			return nil, -1, fmt.Errorf("interface %q: %w", t.Interface, err)
		}
		device = dev.Index
	}
	fd, err := udp(k)
	if err != nil {
		return nil, device, err
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
		err = os.NewSyscallError("bind", unix.Bind(fd, sockaddr(t.Local, k, source, device)))
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return nil, device, err
	}
	return &kernelWay{fd: fd, to: sockaddr(t.Peer, k, k.port(), device)}, device, nil
}

// kernelWay is the socket that a session uses to send.
type kernelWay struct {
	fd int
	to unix.Sockaddr
}

// write implements transmitter.
func (w *kernelWay) write(b []byte) error {
	return os.NewSyscallError("sendto", unix.Sendto(w.fd, b, unix.MSG_DONTWAIT, w.to))
}

func (w *kernelWay) close() { _ = unix.Close(w.fd) } // all packets have been sent
