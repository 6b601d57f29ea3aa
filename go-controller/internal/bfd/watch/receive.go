// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sockfilter"
)

// udpHeader is the length of a UDP header (RFC 768).
const udpHeader = 8

// listen implements network. It receives copies of the packets with a raw socket, which does not take the UDP port:
// FRR's bfdd, which opens all BFD ports at its start and aborts if it can't, gets every packet as well. A raw socket
// also gets packets whose UDP checksum is wrong (raw(7)).
func (n *kernel) listen(k kind) (receiver, error) {
	lock, err := lockKind(k)
	if err != nil {
		return nil, err
	}
	p := &kernelPort{kernel: n, kind: k, lock: lock}
	if p.fd, err = raw(k); err != nil {
		_ = unix.Close(lock)
		return nil, err
	}
	n.ports[k] = p
	return p, nil
}

// lockKind ensures that one process of this product in a network namespace receives the packets of a kind: the peers
// would see two senders with one address. It returns an abstract socket (unix(7)), or EADDRINUSE.
func lockKind(k kind) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	name := fmt.Sprintf("@ovnkube-slb/bfd/%s/%d", k, k.port())
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		_ = unix.Close(fd) // it was not used yet
		return -1, os.NewSyscallError("bind "+name, err)
	}
	return fd, nil
}

// raw returns a raw socket that receives the UDP packets to the port of a kind: raw(7), ipv6(7).
func raw(k kind) (int, error) {
	family := unix.AF_INET
	options := []option{{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_PKTINFO, 1}}
	if k&overIPv6 != 0 {
		family = unix.AF_INET6
		options = []option{{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1}}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return -1, os.NewSyscallError("socket (CAP_NET_RAW is needed)", err)
	}
	if err = set(fd, options...); err == nil {
		err = sockfilter.Attach(fd, portFilter(k, nil))
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return -1, err
	}
	return fd, nil
}

// networkHeader is the offset of the network header for a filter whose packets begin after it (SKF_NET_OFF in
// linux/filter.h).
const networkHeader = 0xfff00000

// portFilter accepts packets to the port of a kind from some senders, or from all if there are more than maxSenders.
// Any host, and any pod, can send packets to the port of a node. If they took the room of the peers' packets, sessions
// would go down. Packets of IPv4 begin with the IP header, those of IPv6 with that of UDP.
func portFilter(k kind, senders []netip.Addr) []bpf.Instruction {
	load, source := []bpf.Instruction{bpf.LoadMemShift{Off: 0}, bpf.LoadIndirect{Off: 2, Size: 2}}, uint32(12)
	if k&overIPv6 != 0 {
		load, source = []bpf.Instruction{bpf.LoadAbsolute{Off: 2, Size: 2}}, networkHeader+8
	}
	accept, reject := bpf.RetConstant{Val: 1 << 16}, bpf.RetConstant{Val: 0}
	filter := append(load, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(k.port()), SkipTrue: 1}, reject)
	if len(senders) > maxSenders {
		return append(filter, accept)
	}
	for _, sender := range senders {
		words := sender.AsSlice()
		for i := 0; i < len(words); i += 4 {
			rest := uint8((len(words) - i - 4) / 4)                                     //nolint:gosec // at most 3
			filter = append(filter, bpf.LoadAbsolute{Off: source + uint32(i), Size: 4}, //nolint:gosec // at most 12
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(words[i:]), SkipFalse: 2*rest + 1})
		}
		filter = append(filter, accept)
	}
	return append(filter, reject)
}

// maxSenders is the number of senders for which there is room in a filter: 9 instructions each of at most 4096
// (bpf_common.h, BPF_MAXINSNS).
const maxSenders = 400

// kernelPort receives the packets of all sessions of a kind.
type kernelPort struct {
	kernel *kernel
	kind   kind
	// fd is the raw socket, lock that of lockKind.
	fd, lock int

	packet, control [256]byte
}

func (p *kernelPort) close() {
	p.kernel.ports[p.kind] = nil
	_ = unix.Close(p.fd) // unread packets are not needed
	_ = unix.Close(p.lock)
}

// from implements receiver.
func (p *kernelPort) from(senders []netip.Addr) error {
	return sockfilter.Attach(p.fd, portFilter(p.kind, senders))
}

// read implements receiver. An error of the socket means that there is nothing to read.
func (p *kernelPort) read(take func(datagram)) {
	for range atOnce {
		n, controls, _, from, err := unix.Recvmsg(p.fd, p.packet[:], p.control[:], unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		d, ok := p.kind.datagram(p.packet[:n])
		if !ok {
			continue
		}
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

// datagram returns the source port and the payload of a packet from a raw socket, and false if it is not to the port of
// the kind: packets that arrive before the filter is attached are not filtered.
func (k kind) datagram(packet []byte) (d datagram, ok bool) {
	if k&overIPv6 == 0 {
		const minHeader = 20
		if len(packet) < minHeader {
			return d, false
		}
		header := int(packet[0]&0xf) * 4
		if header < minHeader || header > len(packet) {
			return d, false
		}
		packet = packet[header:]
	}
	if len(packet) < udpHeader || binary.BigEndian.Uint16(packet[2:]) != k.port() {
		return d, false
	}
	length := int(binary.BigEndian.Uint16(packet[4:]))
	if length < udpHeader || length > len(packet) {
		return d, false
	}
	return datagram{source: binary.BigEndian.Uint16(packet), payload: packet[udpHeader:length]}, true
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

// sink is a UDP socket from which nothing is read.
type sink int

// Close implements io.Closer.
func (s sink) Close() error { return os.NewSyscallError("close", unix.Close(int(s))) }

// sink implements network. Without a UDP socket for a packet, the kernel answers it with ICMP port unreachable. This
// one is connected, so that packets of other senders go to another BFD daemon, if there is one; with SO_REUSEADDR, it
// keeps none from binding the port.
func (n *kernel) sink(k kind, d datagram) (io.Closer, error) {
	fd, err := udp(k)
	if err != nil {
		return nil, err
	}
	err = set(fd, option{unix.SOL_SOCKET, unix.SO_RCVBUF, 0}, // what it receives must not use memory
		option{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1})
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, sockaddr(d.to, k, k.port(), d.device)))
	}
	if err == nil {
		err = os.NewSyscallError("connect", unix.Connect(fd, sockaddr(d.from, k, d.source, d.device)))
	}
	if err != nil {
		_ = unix.Close(fd) // it was not used yet
		return nil, err
	}
	return sink(fd), nil
}
