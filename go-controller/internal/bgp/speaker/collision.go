// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// errCollision is the error of an attempt that was not made, because another BGP speaker of the node has a session
// between the same addresses. Routers refuse a second one, or let it replace the first (RFC 4271 section 6.8; FRR
// does so if the first has graceful restart): both speakers would then replace each other's session again and again.
type errCollision struct{ local, peer netip.Addr }

func (e errCollision) Error() string {
	return fmt.Sprintf("not dialed: another BGP speaker of this node (FRR of frr-k8s?) has a session from %s to %s, and "+
		"a router has one with each address: let the two have different routers, or set sourceAddress to another address "+
		"of the node", e.local, e.peer)
}

// tcpEstablished is the kernel's number of the state ESTABLISHED (include/net/tcp_states.h).
const tcpEstablished = 1

// collision returns errCollision if another process of the network namespace has an established BGP connection between
// the addresses of a target. It returns nil if there is none or the kernel does not tell.
func collision(t target) error {
	local := source(t)
	if !local.IsValid() {
		return nil
	}
	foreign := slices.DeleteFunc(connections(local, t), own)
	if len(foreign) == 0 {
		return nil
	}
	// A connection of this process may have been closed before own looked for it. Then it is established no longer.
	still := connections(local, t)
	if slices.ContainsFunc(foreign, func(inode uint32) bool { return slices.Contains(still, inode) }) {
		return errCollision{local, t.addr}
	}
	return nil
}

// connections returns the inodes of the sockets that connect an address to a target.
func connections(local netip.Addr, t target) (inodes []uint32) {
	family := uint8(unix.AF_INET)
	if t.addr.Is6() {
		family = unix.AF_INET6
	}
	sockets, err := netlink.SocketDiagTCP(family)
	if err != nil {
		return nil
	}
	for _, s := range sockets {
		if connects(s, local, t) {
			inodes = append(inodes, s.INode)
		}
	}
	return inodes
}

// connects reports whether a socket is an established BGP connection from an address to a target, which either side may
// have opened. Link-local addresses may occur on several links of a node, and are those of the target on its own only.
func connects(s *netlink.Socket, local netip.Addr, t target) bool {
	from, _ := netip.AddrFromSlice(s.ID.Source)
	to, _ := netip.AddrFromSlice(s.ID.Destination)
	if s.State != tcpEstablished || s.ID.DestinationPort != t.neighbor.Port && s.ID.SourcePort != packet.BGP_PORT ||
		from.Unmap() != local.WithZone("") || to.Unmap() != t.addr.WithZone("") {
		return false
	}
	if t.addr.Zone() == "" {
		return true
	}
	dev, err := net.InterfaceByName(t.addr.Zone())
	return err == nil && uint32(dev.Index) == s.ID.Interface //nolint:gosec // int32 in the kernel
}

// own reports whether this process has a socket, by its inode (proc(5)).
func own(inode uint32) bool {
	const files = "/proc/self/fd"
	list, err := os.ReadDir(files)
	if err != nil {
		return false
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	for _, f := range list {
		if to, err := os.Readlink(filepath.Join(files, f.Name())); err == nil && to == want {
			return true
		}
	}
	return false
}
