// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mostHops is the TTL of every packet sent (RFC 5881 section 5).
	mostHops = 255
	// networkControl is the traffic class CS6 (RFC 4594 section 3.1).
	networkControl = 48 << 2
	// atOnce limits the packets read in one iteration, so that a flood of packets can't prevent sending.
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
			fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
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

// listen implements network. The port is bound exclusively: with SO_REUSEADDR, one of two daemons would receive the
// packets of both.
func (n *kernel) listen(k kind) (receiver, error) {
	fd, err := udp(k)
	if err != nil {
		return nil, err
	}
	options := []option{{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_PKTINFO, 1}}
	if k&overIPv6 != 0 {
		options = []option{{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1}}
	}
	// The options are set first, so that no packet is received without its TTL.
	if err = set(fd, options...); err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, sockaddr(netip.Addr{}, k, k.port(), 0)))
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return nil, err
	}
	n.ports[k] = &kernelPort{kernel: n, kind: k, fd: fd}
	return n.ports[k], nil
}

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
func (s *kernelWay) write(b []byte) error {
	return os.NewSyscallError("sendto", unix.Sendto(s.fd, b, unix.MSG_DONTWAIT, s.to))
}

func (s *kernelWay) close() { _ = unix.Close(s.fd) } // all packets have been sent

// kernelPort is the socket that receives the packets of all sessions of a kind.
type kernelPort struct {
	kernel *kernel
	kind   kind
	fd     int

	payload, control [128]byte
}

func (p *kernelPort) close() {
	p.kernel.ports[p.kind] = nil
	_ = unix.Close(p.fd) // unread packets are not needed
}

// read implements receiver. An error of the socket concerns a packet that was sent, or means that there is nothing to
// read.
func (p *kernelPort) read(take func(datagram)) {
	for range atOnce {
		n, controls, _, from, err := unix.Recvmsg(p.fd, p.payload[:], p.control[:], unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		d := datagram{payload: p.payload[:n]}
		switch sa := from.(type) {
		case *unix.SockaddrInet4:
			d.from = netip.AddrFrom4(sa.Addr)
		case *unix.SockaddrInet6:
			d.from = netip.AddrFrom16(sa.Addr)
		}
		if d.ancillary(p.control[:controls]) {
			take(d)
		}
	}
}

// ancillary reads the TTL, the interface and the destination: ip(7), ipv6(7). It returns false if one is missing.
func (d *datagram) ancillary(control []byte) bool {
	const inPktinfo, in6Pktinfo = 12, 20 // sizes of the structs
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return false
	}
	got := 0
	for _, m := range messages {
		is := [2]int32{m.Header.Level, m.Header.Type}
		switch {
		case (is == [2]int32{unix.IPPROTO_IP, unix.IP_TTL} || is == [2]int32{unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT}) &&
			len(m.Data) >= 4:
			d.ttl = int(binary.NativeEndian.Uint32(m.Data))
		case is == [2]int32{unix.IPPROTO_IP, unix.IP_PKTINFO} && len(m.Data) >= inPktinfo:
			d.device = int(binary.NativeEndian.Uint32(m.Data))
			d.to = netip.AddrFrom4([4]byte(m.Data[8:]))
		case is == [2]int32{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO} && len(m.Data) >= in6Pktinfo:
			d.to = netip.AddrFrom16([16]byte(m.Data))
			d.device = int(binary.NativeEndian.Uint32(m.Data[16:]))
		default:
			continue
		}
		got++
	}
	return got == 2
}
