// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sockfilter"
)

// socket is a TCP socket of the network namespace.
type socket struct {
	local, peer netip.AddrPort // without zones
	// device is the index of the interface that it is bound to; 0 for none.
	device uint32
	// cookie is a number that the kernel gives no other socket (socket(7), SO_COOKIE).
	cookie uint64
	// established is false for a socket that has ended.
	established bool
	// acked is the number of octets that the peer has received. It is known for a socket that has ended.
	acked uint64
}

// sockets tells the sockets of this process from those of other processes.
type sockets struct {
	// listing is held while sockets are listed, for which the kernel visits all that the node has.
	listing sync.Mutex

	mu sync.Mutex
	// events is a socket of sock_diag(7) that receives a message about each TCP socket that ends; nil if there is none.
	// Without it, nothing is known.
	events *os.File
	// own has the cookies of this process's sockets. The value is when the socket ended, the zero time if it has not.
	own map[uint64]time.Time
	// ports are the ports of routers. Sockets with others are not followed.
	ports []uint16
}

const (
	// destroyed is the mask of the multicast groups 1 and 3 (linux/sock_diag.h, SKNLGRP_INET_TCP_DESTROY and
	// SKNLGRP_INET6_TCP_DESTROY).
	destroyed = 1<<0 | 1<<2
	// remembered is how long a socket of this process is known after its end: a list of sockets may be older.
	remembered = time.Minute
	// idAt and infoAt are the offsets of the socket's identity and of the attributes in struct inet_diag_msg
	// (linux/inet_diag.h).
	idAt, infoAt = 4, 72
)

// watch calls ended with each socket of another process that ends, until the context ends. events is from subscribe.
func (s *sockets) watch(ctx context.Context, events *os.File, ended func(socket)) error {
	defer s.unsubscribe()
	defer context.AfterFunc(ctx, func() { _ = events.Close() })()
	buf := make([]byte, 1<<16)
	for {
		n, err := events.Read(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, unix.ENOBUFS) { // ENOBUFS: messages were lost
			return err
		}
		messages, _ := syscall.ParseNetlinkMessage(buf[:max(n, 0)]) // the kernel sends no others
		for _, m := range messages {
			if one, ok := parseEnded(m.Data); ok && !s.ended(one.cookie, time.Now()) {
				ended(one)
			}
		}
	}
}

// subscribe lets sockets be known.
func (s *sockets) subscribe() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	events := os.NewFile(uintptr(fd), "sock_diag")
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := filterPorts(fd, s.ports); err != nil {
		return nil, errors.Join(err, events.Close())
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: destroyed}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), events.Close())
	}
	s.events, s.own = events, map[uint64]time.Time{}
	return events, nil
}

func (s *sockets) unsubscribe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.events.Close()
	s.events = nil
}

// setPorts replaces the ports of routers.
func (s *sockets) setPorts(ports []uint16) error {
	slices.Sort(ports)
	ports = slices.Compact(ports)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(ports, s.ports) {
		return nil
	}
	s.ports = ports
	if s.events == nil {
		return nil
	}
	raw, err := s.events.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(raw.Control(func(fd uintptr) { err = filterPorts(int(fd), ports) }), err)
}

// add makes a socket known as one of this process, and returns its cookie. It must not be connected yet. The caller
// must call ended if the socket gets no peer: the messages that are received are those of sockets with one.
func (s *sockets) add(fd int) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		return 0, nil
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt SO_COOKIE", err)
	}
	s.own[cookie] = time.Time{}
	return cookie, nil
}

// ended records the end of a socket, and reports whether it was one of this process.
func (s *sockets) ended(cookie uint64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.own, func(_ uint64, at time.Time) bool { return !at.IsZero() && now.Sub(at) > remembered })
	_, own := s.own[cookie]
	if own {
		s.own[cookie] = now
	}
	return own
}

// others returns the sockets of other processes between an address and a target; none if they are not known.
func (s *sockets) others(local netip.Addr, t target) []socket {
	s.listing.Lock()
	defer s.listing.Unlock()
	var all []socket
	err := listSockets(local, t, func(one socket) {
		if one.connects(local, t) {
			all = append(all, one)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.events == nil {
		return nil
	}
	return slices.DeleteFunc(all, func(one socket) bool {
		_, own := s.own[one.cookie]
		return own
	})
}

// connects reports whether a socket is a BGP connection from an address to a target, which either side may have opened.
// Link-local addresses may occur on several links of a node, and are those of the target on its own only.
func (s socket) connects(local netip.Addr, t target) bool {
	if s.peer.Port() != t.neighbor.Port && s.local.Port() != packet.BGP_PORT ||
		s.local.Addr() != local.WithZone("") || s.peer.Addr() != t.addr.WithZone("") {
		return false
	}
	if t.addr.Zone() == "" {
		return true
	}
	dev, err := net.InterfaceByName(t.addr.Zone())
	return err == nil && uint32(dev.Index) == s.device //nolint:gosec // int32 in the kernel
}

// tcpEstablished is the kernel's number of the state ESTABLISHED (include/net/tcp_states.h).
const tcpEstablished = 1

// parseSocket reads a message about a socket: struct inet_diag_msg. It returns false for a message of another form.
func parseSocket(m []byte) (socket, bool) {
	if len(m) < infoAt {
		return socket{}, false
	}
	id := m[idAt:]
	addr := func(b []byte) netip.Addr {
		if m[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b))
		}
		return netip.AddrFrom16([16]byte(b)).Unmap()
	}
	return socket{
		local:       netip.AddrPortFrom(addr(id[4:]), binary.BigEndian.Uint16(id)),
		peer:        netip.AddrPortFrom(addr(id[20:]), binary.BigEndian.Uint16(id[2:])),
		device:      binary.NativeEndian.Uint32(id[36:]),
		cookie:      uint64(binary.NativeEndian.Uint32(id[40:])) | uint64(binary.NativeEndian.Uint32(id[44:]))<<32,
		established: m[1] == tcpEstablished,
	}, true
}

// parseEnded reads a message about a socket that has ended: that of parseSocket, and the attribute INET_DIAG_INFO,
// struct tcp_info. It returns false for a message of another form.
func parseEnded(m []byte) (socket, bool) {
	one, ok := parseSocket(m)
	if !ok {
		return socket{}, false
	}
	attributes, err := nl.ParseRouteAttr(m[infoAt:])
	if err != nil {
		return socket{}, false
	}
	const acked = unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked)
	for _, a := range attributes {
		if a.Attr.Type == netlink.INET_DIAG_INFO && len(a.Value) >= int(acked)+8 {
			one.acked = binary.NativeEndian.Uint64(a.Value[acked:])
		}
	}
	return one, true
}

// filterPorts lets a socket of sock_diag receive only messages about sockets with one of the ports on the other side,
// or with the port of BGP on this one. On a node with many connections, most are not about BGP.
func filterPorts(fd int, ports []uint16) error {
	const here, there = unix.SizeofNlMsghdr + idAt, unix.SizeofNlMsghdr + idAt + 2
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: here, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: packet.BGP_PORT, SkipTrue: 1}, bpf.RetConstant{Val: 1 << 16},
		bpf.LoadAbsolute{Off: there, Size: 2}}
	for _, port := range ports {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 1},
			bpf.RetConstant{Val: 1 << 16})
	}
	return sockfilter.Attach(fd, append(program, bpf.RetConstant{}))
}
