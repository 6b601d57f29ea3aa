// SPDX-License-Identifier: Apache-2.0

package bfd

import (
	"strconv"
	"time"
)

// State is the state of a session (RFC 5880 section 4.1).
type State uint8

// The states, numbered as in packets.
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

// Diagnostic is the reason for the last state change of a session (RFC 5880 section 4.1). Peers may send values that
// are not defined here.
type Diagnostic uint8

// The diagnostics that a Session uses.
const (
	NoDiagnostic         Diagnostic = 0
	DetectionTimeExpired Diagnostic = 1
	NeighborSignaledDown Diagnostic = 3
	AdministrativelyDown Diagnostic = 7
)

func (d Diagnostic) String() string {
	switch d {
	case NoDiagnostic:
		return "no diagnostic"
	case DetectionTimeExpired:
		return "detection time expired"
	case NeighborSignaledDown:
		return "neighbor said down"
	case AdministrativelyDown:
		return "administratively down"
	}
	return "diagnostic " + strconv.Itoa(int(d))
}

// Settings configures a session.
type Settings struct {
	// Receive is the shortest interval at which we can receive packets. Transmit is the interval at which we send them
	// if the peer can receive that. Both are 1 ms to 71 minutes; other values are replaced by the nearest of these.
	Receive, Transmit time.Duration
	// Multiplier is how many packets in a row must be missed, 1 to 255. The value 0 means 1.
	Multiplier uint8
	// Passive means that nothing is sent before the peer's first packet was received (RFC 5880 section 6.1).
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

// Status is the observed state of a session.
type Status struct {
	State State
	// Diagnostic is why the state is not Up.
	Diagnostic Diagnostic
	// Since is when the session entered this state.
	Since time.Time
	// Interval is the longest time between two of our packets. Detection is how long the peer may be silent; 0 while
	// there is no peer.
	Interval, Detection time.Duration
	// Failures counts how often the session went from Up to Down because the path failed or the peer reported it. A
	// peer in AdminDown is not a failure (RFC 5882 section 3.2).
	Failures uint64
}
