// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"io"
	"net/netip"
	"time"
)

// network is what a Watcher sends and receives with: the sockets of the kernel (newKernel), or the memory of a test,
// whose time is virtual. Only wake may be called from another goroutine than that of Run.
type network interface {
	// listen receives the packets to the port of a kind on all addresses. The error is EADDRINUSE if another process of
	// this product does.
	listen(k kind) (receiver, error)
	// dial opens the way to a target from a source port. device is the index of the target's interface; 0 if the target
	// has none, -1 if there is no interface of that name. It is valid with an error, too.
	dial(t Target, k kind, source uint16) (way transmitter, device int, err error)
	// sink keeps the host from answering packets like d with ICMP port unreachable, until it is closed.
	sink(k kind, d datagram) (io.Closer, error)
	// wait returns when there are packets to read, after wake, or at the given time at the latest. The zero time means
	// never.
	wait(until time.Time) error
	// wake ends the current wait, or the next one.
	wake()
	close()
}

// receiver is an open port.
type receiver interface {
	// from limits the packets that are received from now on to those that may count for a session. At first, there are
	// none.
	from(remotes []remote) error
	// read passes on the received packets, and returns when there is nothing to read.
	read(take func(datagram))
	close()
}

// remote is the other end of a session.
type remote struct {
	addr netip.Addr
	// discriminator is that of our end, 0 if it has none yet. If the session is Up, packets must have it, and minTTL.
	// Otherwise they may be without, and a session reports why packets are refused.
	discriminator uint32
	isUp          bool
	minTTL        uint8
}

// transmitter is an open way to a target.
type transmitter interface {
	write(b []byte) error
	close()
}

// datagram is a received datagram. The payload is valid until the next one is read.
type datagram struct {
	from, to netip.Addr
	// source is the source port.
	source uint16
	// device is the index of the interface on which it was received.
	device  int
	ttl     int
	payload []byte
}
