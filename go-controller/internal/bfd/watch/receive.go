// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

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
	for range 2 {
		fd, err := raw(k)
		if err != nil {
			p.close()
			return nil, err
		}
		p.fds = append(p.fds, fd)
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
		err = sockfilter.Attach(fd, portFilters(k, nil)[0])
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

const (
	// maxRemotes and maxSenders are the numbers of sessions, and of senders, for which there is room in a filter of at
	// most 4096 instructions (bpf_common.h, BPF_MAXINSNS): 14 and 9 each.
	maxRemotes, maxSenders = 250, 400
)

// portFilters returns filters for packets to the port of a kind, the best first: one that accepts what may count for a
// session, one that accepts all that the peers send, and one that accepts all. Any host, and any pod, can send packets
// to the port of a node, also from the address of a peer. If they took the room of the peers' packets, sessions would
// go down.
func portFilters(k kind, remotes []remote) (best [][]bpf.Instruction) {
	at := offsets(k)
	accept, reject := bpf.RetConstant{Val: 1 << 16}, bpf.RetConstant{Val: 0}
	port := []bpf.Instruction{at.udp(2, 2), bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(k.port()), SkipTrue: 1}, reject}
	if k&overIPv6 == 0 {
		port = append([]bpf.Instruction{bpf.LoadMemShift{Off: 0}}, port...)
	}
	for _, exact := range []bool{true, false} {
		if exact && len(remotes) > maxRemotes || len(remotes) > maxSenders {
			continue
		}
		filter := slices.Clone(port)
		for _, r := range remotes {
			filter = append(filter, r.filter(at, exact)...)
		}
		best = append(best, append(filter, reject))
	}
	return append(best, append(port, accept))
}

// attachBest attaches the first of some filters for which there is memory, the shortest of which is the last one. The
// memory of a socket for filters is limited (net.core.optmem_max, 20 KiB before Linux 6.7), and the kernel counts the
// present filter beside the new one, both as it has translated them.
func attachBest(filters [][]bpf.Instruction, attach func([]bpf.Instruction) error) error {
	err := attach(filters[0])
	if !errors.Is(err, unix.ENOMEM) {
		return err
	}
	if err := attach(filters[len(filters)-1]); err != nil {
		return err
	}
	for _, filter := range filters {
		if err := attach(filter); !errors.Is(err, unix.ENOMEM) {
			return err
		}
	}
	return nil
}

// fieldOffsets are the offsets of fields of the IP header, and how fields of UDP are loaded. Packets of IPv4 begin with
// the IP header, whose length a filter keeps in register X, those of IPv6 with that of UDP.
type fieldOffsets struct {
	source, ttl uint32
	udp         func(off uint32, size int) bpf.Instruction
}

func offsets(k kind) fieldOffsets {
	if k&overIPv6 != 0 {
		return fieldOffsets{networkHeader + 8, networkHeader + 7, func(off uint32, size int) bpf.Instruction {
			return bpf.LoadAbsolute{Off: off, Size: size}
		}}
	}
	return fieldOffsets{12, 8, func(off uint32, size int) bpf.Instruction {
		return bpf.LoadIndirect{Off: off, Size: size}
	}}
}

// filter returns instructions that accept what may count for the session, all that its peer sends unless exact, and end
// behind the last one otherwise.
func (r remote) filter(at fieldOffsets, exact bool) []bpf.Instruction {
	const atYour, end = udpHeader + 8, 255 // RFC 5880 section 4.1
	var list []bpf.Instruction
	words := r.addr.AsSlice()
	for i := 0; i < len(words); i += 4 {
		list = append(list, bpf.LoadAbsolute{Off: at.source + uint32(i), Size: 4}, //nolint:gosec // at most 12
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(words[i:]), SkipFalse: end})
	}
	if exact && r.isUp {
		list = append(list, bpf.LoadAbsolute{Off: at.ttl, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(r.minTTL), SkipFalse: end})
	}
	if exact {
		list = append(list, at.udp(atYour, 4))
		if !r.isUp {
			list = append(list, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1})
		}
		list = append(list, bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.discriminator, SkipFalse: end})
	}
	list = append(list, bpf.RetConstant{Val: 1 << 16})
	for i, instruction := range list {
		if jump, is := instruction.(bpf.JumpIf); is && jump.SkipFalse == end {
			jump.SkipFalse = uint8(len(list) - i - 1) //nolint:gosec // at most 14
			list[i] = jump
		}
	}
	return list
}

// kernelPort receives the packets of all sessions of a kind.
type kernelPort struct {
	kernel *kernel
	kind   kind
	// fds are the raw sockets for sessions that are Up and for the others, lock is that of lockKind. Any host on the link
	// can send packets for the latter, which take no room of those for the former.
	fds  []int
	lock int

	packet, control [256]byte
}

func (p *kernelPort) close() {
	p.kernel.ports[p.kind] = nil
	for _, fd := range p.fds {
		_ = unix.Close(fd) // unread packets are not needed
	}
	_ = unix.Close(p.lock)
}

// from implements receiver.
func (p *kernelPort) from(remotes []remote) error {
	var up, others []remote
	for _, r := range remotes {
		if r.isUp {
			up = append(up, r)
		} else {
			others = append(others, r)
		}
	}
	for i, list := range [][]remote{up, others} {
		if err := attachBest(portFilters(p.kind, list), func(filter []bpf.Instruction) error {
			return sockfilter.Attach(p.fds[i], filter)
		}); err != nil {
			return err
		}
	}
	return nil
}

// read implements receiver.
func (p *kernelPort) read(take func(datagram)) {
	for _, fd := range p.fds {
		p.readSocket(fd, take)
	}
}

// readSocket reads from one socket. An error of it means that there is nothing to read.
func (p *kernelPort) readSocket(fd int, take func(datagram)) {
	for range atOnce {
		n, controls, _, from, err := unix.Recvmsg(fd, p.packet[:], p.control[:], unix.MSG_DONTWAIT)
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
