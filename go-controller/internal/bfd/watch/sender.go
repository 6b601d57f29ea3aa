// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
)

// Source ports of RFC 5881 section 4. Each session of the system has its own.
const firstSource, sources = 49152, 1 << 14

// sender is how a session sends.
type sender struct {
	network network
	// way is nil while it is not open.
	way transmitter
	// source is the port, which is kept when the way is reopened; 0 before the first time.
	source uint16
	// device is that of network.dial.
	device int
	// sink takes the packets that the peer sends from source port sinkPort; nil if there is none.
	sink     io.Closer
	sinkPort uint16
}

// openSink lets the kernel have a socket for packets like d, which came from the peer. Without it, the peer gets ICMP
// port unreachable, which does no harm to BFD; so an error is not reported, and the next source port is tried.
func (s *sender) openSink(k kind, d datagram) {
	if s.sinkPort == d.source {
		return
	}
	s.closeSink()
	s.sinkPort = d.source
	if sink, err := s.network.sink(k, d); err == nil {
		s.sink = sink
	}
}

func (s *sender) closeSink() {
	if s.sink != nil {
		_ = s.sink.Close() // nothing was read
	}
	s.sink, s.sinkPort = nil, 0
}

// open opens the way with a source port that none of our other sessions uses.
func (s *sender) open(t Target, k kind, claimed func(uint16) bool) error {
	if s.source != 0 {
		return s.reopen(t, k)
	}
	from := rand.IntN(sources)
	for i := range sources {
		source := uint16(firstSource + (from+i)%sources)
		if claimed(source) {
			continue
		}
		s.source = source
		err := s.reopen(t, k)
		if err == nil {
			return nil
		}
		s.source = 0
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return fmt.Errorf("send BFD to %s: no source port from %d to %d is free", t.Peer, firstSource, firstSource+sources-1)
}

// reopen opens the way with the source port of the session.
func (s *sender) reopen(t Target, k kind) error {
	way, device, err := s.network.dial(t, k, s.source)
	s.device = device
	if err != nil {
		return fmt.Errorf("send BFD to %s: %w", t.Peer, err)
	}
	s.way = way
	return nil
}

func (s *sender) close() {
	if s.way != nil {
		s.way.close()
	}
	s.way = nil
	s.closeSink()
}
