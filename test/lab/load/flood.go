// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Flood configures TCP segments with SYN, each from another pair of source address and port.
type Flood struct {
	Target netip.AddrPort
	// Sources are addresses of this host. They are of the target's family.
	Sources []netip.Addr
	// Count is the number of segments, at most as many as there are pairs. Rate is the number per second.
	Count, Rate int
}

// firstPort and lastPort bound the source ports of a flood.
const firstPort, lastPort = 1024, 65535

// MostPairs returns how many pairs of address and port a number of sources has.
func MostPairs(sources int) int { return sources * (lastPort - firstPort + 1) }

func (f Flood) validate() error {
	if most := MostPairs(len(f.Sources)); f.Count < 1 || f.Count > most {
		return fmt.Errorf("flood: %d segments: want 1 to %d, from %d addresses", f.Count, most, len(f.Sources))
	}
	if f.Rate < 1 {
		return fmt.Errorf("flood: %d segments per second: want some", f.Rate)
	}
	for _, source := range f.Sources {
		if source.Is4() != f.Target.Addr().Is4() {
			return fmt.Errorf("flood: from %s to %s: want one family", source, f.Target)
		}
	}
	return nil
}

// Send sends the segments at an even rate through raw sockets, for which it needs root. It returns how many it sent
// until the context was done, and the seconds.
func (f Flood) Send(ctx context.Context) (sent int, seconds float64, err error) {
	if err := f.validate(); err != nil {
		return 0, 0, err
	}
	sockets := make([]int, len(f.Sources))
	for i, source := range f.Sources {
		if sockets[i], err = rawSocket(source); err != nil {
			return 0, 0, fmt.Errorf("flood from %s: %w", source, err)
		}
		defer unix.Close(sockets[i])
	}
	const tick = time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	start, to := time.Now(), sockaddr(f.Target.Addr())
	for sent < f.Count {
		due := min(f.Count, int(time.Since(start).Seconds()*float64(f.Rate)))
		for ; sent < due; sent++ {
			i := sent % len(f.Sources)
			from := netip.AddrPortFrom(f.Sources[i], firstPort+uint16(sent/len(f.Sources)))
			// A full queue of the link loses the segment, as that of a host would.
			if err := unix.Sendto(sockets[i], syn(from, f.Target), 0, to); err != nil && err != unix.ENOBUFS {
				return sent, time.Since(start).Seconds(), fmt.Errorf("flood from %s: %w", from, err)
			}
		}
		select {
		case <-ctx.Done():
			return sent, time.Since(start).Seconds(), nil
		case <-ticker.C:
		}
	}
	return sent, time.Since(start).Seconds(), nil
}

// rawSocket returns a socket for TCP segments from an address (raw(7)). The kernel writes the IP header.
func rawSocket(source netip.Addr) (int, error) {
	domain := unix.AF_INET
	if source.Is6() {
		domain = unix.AF_INET6
	}
	socket, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, sockaddr(source)); err != nil {
		unix.Close(socket)
		return 0, err
	}
	return socket, nil
}

func sockaddr(addr netip.Addr) unix.Sockaddr {
	if addr.Is4() {
		return &unix.SockaddrInet4{Addr: addr.As4()}
	}
	return &unix.SockaddrInet6{Addr: addr.As16()}
}

// syn returns a TCP segment that opens a connection (RFC 9293 section 3.1), with a sequence number that follows from
// the ports.
func syn(from, to netip.AddrPort) []byte {
	const length, flagSYN, window = 20, 0x02, 65535
	b := make([]byte, length)
	binary.BigEndian.PutUint16(b[0:], from.Port())
	binary.BigEndian.PutUint16(b[2:], to.Port())
	binary.BigEndian.PutUint32(b[4:], uint32(from.Port())<<16)
	b[12] = length / 4 << 4
	b[13] = flagSYN
	binary.BigEndian.PutUint16(b[14:], window)
	binary.BigEndian.PutUint16(b[16:], checksum(from.Addr(), to.Addr(), b))
	return b
}

// checksum returns the checksum of a TCP segment whose checksum field is zero and whose length is even, with the pseudo
// header of the addresses' family (RFC 9293 section 3.1, RFC 8200 section 8.1).
func checksum(from, to netip.Addr, segment []byte) uint16 {
	sum := uint32(unix.IPPROTO_TCP) + uint32(len(segment))
	for _, part := range [][]byte{from.AsSlice(), to.AsSlice(), segment} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
