// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Kind is the kind of a stream.
type Kind string

const (
	// UDPFlow sends from Count sockets, by default one, every 10 ms by default: existing flows.
	UDPFlow Kind = "udp-flow"
	// UDPNew sends each request from a new socket, by default every 10 ms.
	UDPNew Kind = "udp-new"
	// TCPNew connects, sends a request and closes, by default every 50 ms.
	TCPNew Kind = "tcp-new"
	// TCPLong keeps Count connections open and sends requests on each, by default every 50 ms.
	TCPLong Kind = "tcp-long"
)

// Lines that the lab's command prints on standard output: AnsweredLine when every stream has received a response, then
// CompleteLine when every flow has received one or has failed. The results follow at the end.
const (
	AnsweredLine = "answered"
	CompleteLine = "complete"
)

// Spec configures one stream.
type Spec struct {
	Kind   Kind           `json:"kind"`
	Target netip.AddrPort `json:"target"`
	// Interval between requests. Zero means the default of the kind.
	Interval time.Duration `json:"interval,omitempty"`
	// Count is the number of flows of a UDPFlow stream, by default 1, or of connections of a TCPLong stream, by default 8.
	Count int `json:"count,omitempty"`
	// From is the source port of the first flow or connection. The others use the ports that follow. Zero means any free
	// ports. A gateway may assign packets from a port that was used a minute ago to the earlier connection.
	From uint16 `json:"from,omitempty"`
}

func (s Spec) complete() (Spec, error) {
	if !s.Target.IsValid() || s.Target.Port() == 0 {
		return s, fmt.Errorf("probe target %q: want an address and a port", s.Target)
	}
	switch s.Kind {
	case UDPFlow, UDPNew:
		s.Interval = cmp.Or(s.Interval, 10*time.Millisecond)
	case TCPNew, TCPLong:
		s.Interval = cmp.Or(s.Interval, 50*time.Millisecond)
	default:
		return s, fmt.Errorf("probe kind %q: want %s, %s, %s or %s", s.Kind, UDPFlow, UDPNew, TCPNew, TCPLong)
	}
	switch s.Kind {
	case UDPFlow:
		s.Count = cmp.Or(s.Count, 1)
	case TCPLong:
		s.Count = cmp.Or(s.Count, 8)
	case UDPNew, TCPNew:
		if s.Count != 0 || s.From != 0 {
			return s, fmt.Errorf("probe %s: count %d, from port %d: only %s and %s have flows to count", s.Kind, s.Count, s.From,
				UDPFlow, TCPLong)
		}
	}
	if last := int(s.From) + s.Count - 1; last > math.MaxUint16 {
		return s, fmt.Errorf("probe %s: from port %d: the last of %d would be %d", s.Kind, s.From, s.Count, last)
	}
	return s, nil
}

// source returns the source port of a flow, zero for any.
func (s Spec) source(flow int) uint16 {
	if s.From == 0 {
		return 0
	}
	return s.From + uint16(flow)
}

// ParseSpec parses KIND://ADDRESS:PORT, such as udp-flow://10.50.0.60:80 or tcp-long://[fd00:50::60]:80. Optional
// suffixes, in this order, are *24 for the count, @20000 for the first source port, and /20ms for the interval.
func ParseSpec(text string) (Spec, error) {
	kind, rest, found := strings.Cut(text, "://")
	rest, length, timed := strings.Cut(rest, "/")
	rest, port, bound := strings.Cut(rest, "@")
	target, number, counted := strings.Cut(rest, "*")
	at, err := netip.ParseAddrPort(target)
	count, from, interval := 0, uint64(0), time.Duration(0)
	if err == nil && counted {
		count, err = strconv.Atoi(number)
	}
	if err == nil && bound {
		from, err = strconv.ParseUint(port, 10, 16)
	}
	if err == nil && timed {
		interval, err = time.ParseDuration(length)
	}
	if !found || err != nil || counted && count < 1 || bound && from < 1 || timed && interval <= 0 {
		return Spec{}, fmt.Errorf("probe %q: want KIND://ADDRESS:PORT, and behind it, or not, *COUNT, @FROM and /INTERVAL",
			text)
	}
	return Spec{Kind: Kind(kind), Target: at, Interval: interval, Count: count, From: uint16(from)}.complete()
}

// ParseSpecs is like ParseSpec, but also accepts all://ADDRESS:PORT, which means one stream of each kind.
func ParseSpecs(text string) ([]Spec, error) {
	if target, all := strings.CutPrefix(text, "all://"); all {
		at, err := netip.ParseAddrPort(target)
		if err != nil {
			return nil, fmt.Errorf("probe %q: %w", text, err)
		}
		return All(at), nil
	}
	spec, err := ParseSpec(text)
	return []Spec{spec}, err
}

// String returns the format that ParseSpec parses.
func (s Spec) String() string {
	text := string(s.Kind) + "://" + s.Target.String()
	if s.Count > 0 {
		text += "*" + strconv.Itoa(s.Count)
	}
	if s.From > 0 {
		text += "@" + strconv.Itoa(int(s.From))
	}
	if s.Interval > 0 {
		text += "/" + s.Interval.String()
	}
	return text
}

// All returns one stream of each kind to each target.
func All(targets ...netip.AddrPort) []Spec {
	var specs []Spec
	for _, target := range targets {
		for _, kind := range []Kind{UDPFlow, UDPNew, TCPNew, TCPLong} {
			specs = append(specs, Spec{Kind: kind, Target: target})
		}
	}
	return specs
}

// Result is the result of one stream.
type Result struct {
	Spec Spec `json:"spec"`
	// Sent counts requests, and Lost those without a timely response.
	Sent int `json:"sent"`
	Lost int `json:"lost"`
	// Gap is the longest time without an answered request, in nanoseconds. GapAt is when it began, since the start.
	Gap   time.Duration `json:"gap"`
	GapAt time.Duration `json:"gapAt"`
	// P50 and P99 are the times within which half and 99 % of the answered requests were answered, in nanoseconds.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	// Flows are the flows of a UDPFlow stream, or the connections of a TCPLong stream.
	Flows []Flow `json:"flows,omitempty"`
	// Backends counts responses by the backend name that they contain, Clients by the client address that the backend saw.
	Backends map[string]int `json:"backends"`
	Clients  map[string]int `json:"clients"`
	// Errors counts failures by message.
	Errors map[string]int `json:"errors,omitempty"`
}

// Flow is the result of one flow or connection.
type Flow struct {
	// Backend is the name of the backend that sent the first response.
	Backend string `json:"backend"`
	// Sent, Lost, Gap and GapAt are the same as in Result.
	Sent  int           `json:"sent"`
	Lost  int           `json:"lost"`
	Gap   time.Duration `json:"gap"`
	GapAt time.Duration `json:"gapAt"`
	// Stall is the longest time that a connection waited for a response.
	Stall time.Duration `json:"stall,omitempty"`
	// Answering reports whether a request that was sent after the run was answered, with Options.Confirm.
	Answering bool `json:"answering,omitempty"`
	// Broken is the reason why a connection failed. It is empty for a connection that survived.
	Broken string `json:"broken,omitempty"`
}

// Broken returns the number of connections that failed.
func (r Result) Broken() int {
	n := 0
	for _, f := range r.Flows {
		if f.Broken != "" {
			n++
		}
	}
	return n
}

// Stall returns the longest time that any connection waited for a response.
func (r Result) Stall() time.Duration {
	longest := time.Duration(0)
	for _, f := range r.Flows {
		longest = max(longest, f.Stall)
	}
	return longest
}

// String returns the result as one line for display.
func (r Result) String() string {
	line := fmt.Sprintf("%-8s %-24s gap %4d ms at %.2fs  lost %d of %d", r.Spec.Kind, r.Spec.Target,
		r.Gap.Milliseconds(), r.GapAt.Seconds(), r.Lost, r.Sent)
	if r.Spec.Kind == TCPLong {
		line += fmt.Sprintf("  broken %d of %d, longest stall %d ms", r.Broken(), r.Spec.Count, r.Stall().Milliseconds())
	}
	line += fmt.Sprintf("  backends %v, clients %v", r.Backends, r.Clients)
	if len(r.Errors) > 0 {
		line += fmt.Sprintf(", errors %v", r.Errors)
	}
	return line
}
