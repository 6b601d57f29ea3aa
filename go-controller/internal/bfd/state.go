// SPDX-License-Identifier: Apache-2.0

package bfd

import (
	"strconv"
	"time"
)

// State of a session (RFC 5880 section 4.1).
type State uint8

// The states, as they are numbered in packets.
const (
	AdminDown State = iota
	Down
	Init
	Up
)

func (s State) String() string {
	switch s {
	case AdminDown:
		return "AdminDown"
	case Down:
		return "Down"
	case Init:
		return "Init"
	case Up:
		return "Up"
	}
	return "State " + strconv.Itoa(int(s))
}

// Diagnostic is why a session changed its state last (RFC 5880 section 4.1). Peers send more
// of them than are named here.
type Diagnostic uint8

// The diagnostics that a Session has.
const (
	NoDiagnostic         Diagnostic = 0
	DetectionTimeExpired Diagnostic = 1
	NeighborSaidDown     Diagnostic = 3
	AdministrativelyDown Diagnostic = 7
)

func (d Diagnostic) String() string {
	switch d {
	case NoDiagnostic:
		return "no diagnostic"
	case DetectionTimeExpired:
		return "detection time expired"
	case NeighborSaidDown:
		return "neighbor said down"
	case AdministrativelyDown:
		return "administratively down"
	}
	return "diagnostic " + strconv.Itoa(int(d))
}

// Settings is how a path is watched.
type Settings struct {
	// Receive is how often we can take a packet, Transmit how often we send one if the peer can
	// take that; 1 ms to 71 minutes, other values are taken as the nearest of these.
	Receive, Transmit time.Duration
	// Multiplier is how many packets in a row must be missing, 1 to 255; 0 is taken as 1.
	Multiplier uint8
	// Passive waits for the peer's first packet (RFC 5880 section 6.1).
	Passive bool
	// Multihop uses RFC 5883 and accepts no packet whose TTL is below MinimumTTL.
	Multihop   bool
	MinimumTTL uint8
}

func (s Settings) bounded() Settings {
	const shortest, longest = time.Millisecond, 71 * time.Minute
	s.Receive = min(max(s.Receive, shortest), longest)
	s.Transmit = min(max(s.Transmit, shortest), longest)
	s.Multiplier = max(s.Multiplier, 1)
	return s
}

// Status is what there is to know of a session.
type Status struct {
	State State
	// Diagnostic is why the state is not Up.
	Diagnostic Diagnostic
	// Since is when the session came into this state.
	Since time.Time
	// Interval is the longest time between two packets of ours, Detection how long the peer may
	// be silent; 0 while there is no peer.
	Interval, Detection time.Duration
	// Failures is how often the session went from Up to Down because the path failed or the peer
	// said so. A peer that is AdminDown is no failure (RFC 5882 section 3.2).
	Failures uint64
}
