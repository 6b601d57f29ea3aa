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
	// from limits the senders whose packets are received from now on. At first, there are none.
	from(senders []netip.Addr) error
	// read passes on the received packets, and returns when there is nothing to read.
	read(take func(datagram))
	close()
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
