// SPDX-License-Identifier: Apache-2.0

package bfd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Packet is a control packet (RFC 5880 section 4.1). Fields that have no meaning without authentication, echo and our
// own demand mode are omitted and sent as 0.
type Packet struct {
	State      State
	Diagnostic Diagnostic
	// Poll requests a packet with Final. No packet has both.
	Poll, Final bool
	// Demand means that the sender wants no periodic packets while both ends are Up (section 6.6).
	Demand bool
	// Multiplier is the number of the sender's packets that must be missed before the session fails.
	Multiplier uint8
	// My is the sender's discriminator. Your is the receiver's; 0 if the sender does not know it.
	My, Your uint32
	// Transmit is the interval at which the sender would like to send, Receive the shortest interval at which it can
	// receive (0: never), in whole microseconds, each less than 72 minutes.
	Transmit, Receive time.Duration
}

// Size is the length of a control packet without authentication, in bytes.
const Size = 24

const (
	version = 1
	// Bits of the second byte, below the state.
	pollBit, finalBit, authenticatedBit, demandBit, multipointBit = 0x20, 0x10, 0x04, 0x02, 0x01
)

// Append appends the packet's bytes to b. Intervals that do not fit are encoded as the longest possible one.
func (p Packet) Append(b []byte) []byte {
	bits := byte(p.State)<<6 | flag(p.Poll, pollBit) | flag(p.Final, finalBit) | flag(p.Demand, demandBit)
	b = append(b, version<<5|byte(p.Diagnostic)&0x1f, bits, p.Multiplier, Size)
	for _, word := range []uint32{p.My, p.Your, microseconds(p.Transmit), microseconds(p.Receive), 0} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

// Decode parses the payload of a datagram. It rejects what RFC 5880 section 6.8.6 rejects before the session is
// selected, in the same order. It also rejects packets with authentication, because no session here uses it.
func Decode(b []byte) (Packet, error) {
	if len(b) < Size {
		return Packet{}, fmt.Errorf("packet length %d, want at least %d", len(b), Size)
	}
	bits, length := b[1], int(b[3])
	least := Size
	if bits&authenticatedBit != 0 {
		least += 2
	}
	p := Packet{
		State: State(bits >> 6), Diagnostic: Diagnostic(b[0] & 0x1f),
		Poll: bits&pollBit != 0, Final: bits&finalBit != 0, Demand: bits&demandBit != 0,
		Multiplier: b[2],
		My:         binary.BigEndian.Uint32(b[4:]), Your: binary.BigEndian.Uint32(b[8:]),
		Transmit: duration(b[12:]), Receive: duration(b[16:]),
	}
	switch {
	case b[0]>>5 != version:
		return Packet{}, fmt.Errorf("version %d, want %d", b[0]>>5, version)
	case length < least:
		return Packet{}, fmt.Errorf("length %d, want at least %d", length, least)
	case length > len(b):
		return Packet{}, fmt.Errorf("length field %d, packet length %d", length, len(b))
	case p.Multiplier == 0:
		return Packet{}, errors.New("detect multiplier 0")
	case bits&multipointBit != 0:
		return Packet{}, errors.New("multipoint bit set")
	case p.My == 0:
		return Packet{}, errors.New("my discriminator 0")
	case p.Your == 0 && p.State != Down && p.State != AdminDown:
		return Packet{}, fmt.Errorf("your discriminator 0 in state %s", p.State)
	case bits&authenticatedBit != 0:
		return Packet{}, errors.New("authentication, which is not in use")
	}
	return p, nil
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

func microseconds(d time.Duration) uint32 {
	return uint32(min(max(d.Microseconds(), 0), math.MaxUint32))
}

func duration(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * time.Microsecond
}
