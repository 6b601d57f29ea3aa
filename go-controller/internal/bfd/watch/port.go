// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// port is the socket that receives the packets of all sessions of a kind.
type port struct {
	kind kind
	// fd is -1 while the socket is not open. err is the reason, and retry is when it is opened again.
	fd    int
	err   error
	retry time.Time

	payload, control [128]byte
}

// datagram is a received datagram. The payload is valid until the next one is read.
type datagram struct {
	from, to netip.Addr
	// device is the index of the interface on which it was received.
	device  int
	ttl     int
	payload []byte
}

// atOnce limits the packets read in one iteration, so that a flood of packets can't prevent sending.
const atOnce = 256

// open binds the socket to its port on all addresses, exclusively: with SO_REUSEADDR, one of two daemons would receive
// the packets of both.
func (p *port) open() {
	fd, err := p.socket()
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("another BFD daemon of this node has the port (FRR's bfdd?): %w", err)
	}
	if err != nil {
		p.err = fmt.Errorf("receive BFD over %s on UDP port %d: %w", p.kind, p.kind.port(), err)
		return
	}
	p.fd, p.err = fd, nil
}

func (p *port) socket() (int, error) {
	fd, err := udp(p.kind)
	if err != nil {
		return -1, err
	}
	options := []option{{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_PKTINFO, 1}}
	if p.kind&overIPv6 != 0 {
		options = []option{{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1}}
	}
	// The options are set first, so that no packet is received without its TTL.
	if err = set(fd, options...); err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, sockaddr(netip.Addr{}, p.kind, p.kind.port(), 0)))
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return -1, err
	}
	return fd, nil
}

func (p *port) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // unread packets are not needed
	}
	p.fd, p.err, p.retry = -1, nil, time.Time{}
}

// read passes on the received packets. An error of the socket concerns a packet that was sent, or means that there is
// nothing to read.
func (p *port) read(take func(datagram)) {
	if p.fd < 0 {
		return
	}
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
