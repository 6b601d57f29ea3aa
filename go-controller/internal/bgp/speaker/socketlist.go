// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"encoding/binary"
	"net/netip"
	"slices"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Codes and layouts are those of linux/inet_diag.h.
const (
	reqBytecode          = 1    // INET_DIAG_REQ_BYTECODE
	condJump             = 1    // INET_DIAG_BC_JMP
	condSource, condDest = 7, 8 // INET_DIAG_BC_S_COND and INET_DIAG_BC_D_COND
	opSize, hostCondSize = 4, 8 // struct inet_diag_bc_op and struct inet_diag_hostcond, without an address
	anyPort              = 1<<32 - 1
	diagRequestSize      = 56 // struct inet_diag_req_v2
	// connecting are the states of sockets that are listed: all but TIME_WAIT, CLOSE and LISTEN, by their numbers in
	// include/net/tcp_states.h. No process has a socket in TIME_WAIT, and there may be 100,000 of them.
	connecting = 0xfff &^ (1<<6 | 1<<7 | 1<<10)
)

// listSockets calls each with the TCP sockets between an address and that of a target of which one port is that of BGP.
// The kernel selects them: a node may have 100,000 others.
func listSockets(local netip.Addr, t target, each func(socket)) error {
	request := make([]byte, diagRequestSize)
	request[0], request[1] = unix.AF_INET, unix.IPPROTO_TCP
	if t.addr.Is6() {
		request[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(request[4:], connecting)
	r := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	r.AddRawData(request)
	r.AddRawData(nl.NewRtAttr(reqBytecode, connectionFilter(local, t)).Serialize())
	return r.ExecuteIter(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY, func(m []byte) bool {
		if one, ok := parseSocket(m); ok {
			each(one)
		}
		return true
	})
}

// connectionFilter returns a program of sock_diag(7) that accepts what socket.connects does, apart from the interface.
func connectionFilter(local netip.Addr, t target) []byte {
	// beyond is behind the end of a program, which rejects a socket; at its end, it accepts one.
	const beyond = opSize
	otherwise := func(op []byte, to int) []byte {
		binary.NativeEndian.PutUint16(op[2:], uint16(to)) //nolint:gosec // at most the length of the program
		return op
	}
	here, there := hostCond(condSource, netip.Addr{}, packet.BGP_PORT), hostCond(condDest, netip.Addr{}, t.neighbor.Port)
	program := slices.Concat(otherwise(here, len(here)+opSize),
		otherwise([]byte{condJump, opSize, 0, 0}, opSize+len(there)),
		otherwise(there, len(there)+beyond))
	for _, op := range [][]byte{hostCond(condDest, t.addr, 0), hostCond(condSource, local, 0)} {
		program = append(otherwise(op, len(op)+len(program)+beyond), program...)
	}
	return program
}

// hostCond returns an operation that compares an address, unless it is the zero Addr, and a port, unless it is 0, with
// those of a socket. If they are equal, the next operation follows. The caller sets what follows otherwise.
func hostCond(code byte, a netip.Addr, port uint16) []byte {
	op := make([]byte, opSize+hostCondSize, opSize+hostCondSize+16)
	op[0] = code
	number := uint32(port)
	if port == 0 {
		number = anyPort
	}
	binary.NativeEndian.PutUint32(op[opSize+4:], number)
	if a.IsValid() {
		op[opSize], op[opSize+1] = unix.AF_INET, uint8(a.BitLen()) //nolint:gosec // 32 or 128
		if a.Is6() {
			op[opSize] = unix.AF_INET6
		}
		op = append(op, a.AsSlice()...)
	}
	op[1] = uint8(len(op)) //nolint:gosec // 28 at most
	return op
}
