// SPDX-License-Identifier: Apache-2.0

package neighbour

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sockfilter"
)

// Port sends and receives on one device. It sees the frames on the wire, regardless of how the switch that the device
// belongs to handles them. It needs CAP_NET_RAW.
type Port struct {
	file *os.File
	raw  syscall.RawConn
	mac  [6]byte
	// frame and control are what Receive reads into.
	frame, control []byte
}

// Open returns a Port for a device in this network namespace.
func Open(device string) (*Port, error) {
	port, err := open(device)
	if err != nil {
		return nil, fmt.Errorf("probe neighbours on %s: %w", device, err)
	}
	return port, nil
}

func open(device string) (*Port, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	if len(dev.HardwareAddr) != 6 {
		return nil, fmt.Errorf("hardware address %q is not one of Ethernet", dev.HardwareAddr)
	}
	// Without a protocol, nothing is received before the filter is attached.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	p := &Port{file: os.NewFile(uintptr(fd), device), mac: [6]byte(dev.HardwareAddr),
		frame: make([]byte, maxFrame), control: make([]byte, 128)}
	if err := prepare(fd, dev.Index); err != nil {
		p.Close()
		return nil, err
	}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func prepare(fd, device int) error {
	if err := sockfilter.Attach(fd, answerFilter()); err != nil {
		return err
	}
	// packet(7): tags are reported in auxiliary data, and frames sent by this host are not answers.
	for _, option := range []int{unix.PACKET_AUXDATA, unix.PACKET_IGNORE_OUTGOING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			return os.NewSyscallError("setsockopt SOL_PACKET", err)
		}
	}
	every := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: every, Ifindex: device}))
}

// answerFilter returns a filter that accepts ARP with a sender address, neighbour advertisements, and what may be one
// behind extension headers, because a gateway's uplink carries much other traffic.
func answerFilter() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: atType, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeARP, SkipFalse: 2},
		bpf.LoadAbsolute{Off: atSenderAddr, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 11, SkipFalse: 10}, // an ARP probe (RFC 5227 section 1.1)
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeIPv6, SkipFalse: 10},
		bpf.LoadAbsolute{Off: atHopLimit, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: hops, SkipFalse: 8},
		bpf.LoadAbsolute{Off: atNextHeader, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: hopByHop, SkipTrue: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: routing, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: destinationOptions, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: icmpv6, SkipFalse: 3},
		bpf.LoadAbsolute{Off: atICMP, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: advertisement, SkipFalse: 1},
		bpf.RetConstant{Val: maxFrame},
		bpf.RetConstant{},
	}
}

// maxFrame is how much of a frame is read: all of one without a tag. Extension headers may fill it.
const maxFrame = 1514

// Close closes the port. Receive then returns os.ErrClosed.
func (p *Port) Close() error { return p.file.Close() }

// Ask sends one probe for an address. vlan is 1 to 4094, or 0 for none.
func (p *Port) Ask(a netip.Addr, vlan int) error {
	if _, err := p.file.Write(probeFrame(p.mac, a, vlan)); err != nil {
		return fmt.Errorf("probe for %s: %w", a, err)
	}
	return nil
}

// Claim announces once to all hosts that this device has an address.
func (p *Port) Claim(a netip.Addr) error { return p.ClaimFor(p.mac, a, 0) }

// ClaimFor announces once to all hosts that another MAC address behind this device has an address. vlan is 1 to 4094,
// or 0 for none.
func (p *Port) ClaimFor(mac [6]byte, a netip.Addr, vlan int) error {
	if _, err := p.file.Write(claim(mac, a, vlan)); err != nil {
		return fmt.Errorf("claim %s: %w", a, err)
	}
	return nil
}

// Receive waits for the next frame that may be an answer to any probe, and ok reports whether it is one. It returns
// after each frame, so that the caller can limit how many are read. The error is os.ErrClosed after Close. Only one
// goroutine may call it.
func (p *Port) Receive() (answer Answer, ok bool, err error) {
	for {
		var n, controls int
		waited := p.raw.Read(func(fd uintptr) bool {
			n, controls, _, _, err = unix.Recvmsg(int(fd), p.frame, p.control, 0)
			return err != unix.EAGAIN && err != unix.EINTR
		})
		switch {
		case waited != nil:
			return Answer{}, false, waited
		case errors.Is(err, unix.ENETDOWN): // the link of the device is down; it may return
			continue
		case err != nil:
			return Answer{}, false, os.NewSyscallError("recvmsg", err)
		}
		a, mac, ok := parseAnswer(p.frame[:n])
		if !ok {
			return Answer{}, false, nil
		}
		return Answer{a, mac, tag(p.control[:controls])}, true, nil
	}
}

// Lost reports whether the kernel has discarded frames since the last call because Receive was called too rarely, or
// whether that is not known.
func (p *Port) Lost() bool {
	var stats *unix.TpacketStats
	var err error
	done := p.raw.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS) // resets it
	})
	return done != nil || err != nil || stats.Drops > 0
}

// tag reads the VLAN from a struct tpacket_auxdata, packet(7).
func tag(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	const atStatus, atTag, length = 0, 16, 20
	for _, m := range messages {
		if m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= length &&
			binary.NativeEndian.Uint32(m.Data[atStatus:])&unix.TP_STATUS_VLAN_VALID != 0 {
			return int(binary.NativeEndian.Uint16(m.Data[atTag:]) & 0xfff)
		}
	}
	return 0
}
