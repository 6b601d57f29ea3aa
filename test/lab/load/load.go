// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what each worker does.
type Kind string

const (
	// Stream sends data on one TCP connection. Units are bytes that the responder has confirmed.
	Stream Kind = "stream"
	// Connect opens a TCP connection, sends a request, reads the answer and closes. Units are connections.
	Connect Kind = "connect"
	// Request sends requests on one TCP connection. Units are answers.
	Request Kind = "request"
	// Datagram sends requests from one UDP socket. Units are answers.
	Datagram Kind = "datagram"
)

// answerTimeout bounds the wait for a connection and for an answer. After it the request has failed.
const answerTimeout = time.Second

// Spec configures a run.
type Spec struct {
	Kind    Kind             `json:"kind"`
	Targets []netip.AddrPort `json:"targets"`
	// Workers work at the same time.
	Workers int `json:"workers"`
	// Duration is when the run ends.
	Duration time.Duration `json:"duration"`
	// Count, if not zero, is after how many units the run ends, if that is before Duration. Streams ignore it.
	Count int `json:"count,omitempty"`
}

// Result is the result of a run.
type Result struct {
	// Units that were answered, within Seconds.
	Units   int     `json:"units"`
	Seconds float64 `json:"seconds"`
	// Failed counts connections and requests that failed or were not answered in time. Error is one of the reasons.
	Failed int    `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (s Spec) validate() error {
	switch {
	case s.Kind != Stream && s.Kind != Connect && s.Kind != Request && s.Kind != Datagram:
		return fmt.Errorf("load kind %q: want %s, %s, %s or %s", s.Kind, Stream, Connect, Request, Datagram)
	case len(s.Targets) == 0:
		return fmt.Errorf("load %s: no target", s.Kind)
	case s.Workers < 1 || s.Duration <= 0 || s.Count < 0:
		return fmt.Errorf("load %s: %d workers for %s, %d units: want at least one worker, and some time", s.Kind, s.Workers,
			s.Duration, s.Count)
	}
	return nil
}

// run is a run in progress.
type run struct {
	Spec
	ctx context.Context
	// end is the deadline of ctx. On a busy machine ctx is done later, while connections already fail.
	end                  time.Time
	units, begun, failed atomic.Int64
	reason               atomic.Pointer[error]
}

// Run sends until the duration is over, the units are done, or the context is done.
func Run(ctx context.Context, s Spec) (Result, error) {
	if err := s.validate(); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Duration)
	defer cancel()
	r := newRun(ctx, s)
	start := time.Now()
	var workers sync.WaitGroup
	for i := range s.Workers {
		workers.Go(func() { r.work(i) })
	}
	workers.Wait()
	result := Result{Units: int(r.units.Load()), Seconds: time.Since(start).Seconds(), Failed: int(r.failed.Load())}
	if reason := r.reason.Load(); reason != nil {
		result.Error = (*reason).Error()
	}
	return result, nil
}

// newRun returns a run until the context, which has a deadline, is done.
func newRun(ctx context.Context, s Spec) *run {
	end, _ := ctx.Deadline()
	return &run{Spec: s, ctx: ctx, end: end}
}

// over reports whether the run has ended.
func (r *run) over() bool { return r.ctx.Err() != nil || !time.Now().Before(r.end) }

// work does what the kind of the run says until the run is over. A worker whose connection fails opens another one.
func (r *run) work(worker int) {
	for i := worker; !r.over() && r.more(); i += r.Workers {
		target := r.Targets[i%len(r.Targets)]
		var err error
		switch r.Kind {
		case Stream:
			err = r.stream(target)
		case Connect:
			if r.begin() {
				err = r.converse("tcp", target, func() bool { return false })
			}
		case Request, Datagram:
			if r.begin() {
				network := map[Kind]string{Request: "tcp", Datagram: "udp"}[r.Kind]
				err = r.converse(network, target, r.begin)
			}
		}
		if err != nil && !r.over() {
			r.failed.Add(1)
			r.reason.CompareAndSwap(nil, &err)
		}
	}
}

// more reports whether units are left to begin.
func (r *run) more() bool { return r.Count == 0 || r.begun.Load() < int64(r.Count) }

// begin claims a unit. It returns false if none is left.
func (r *run) begin() bool { return r.begun.Add(1) <= int64(r.Count) || r.Count == 0 }

// dial connects to a target.
func (r *run) dial(network string, target netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Timeout: answerTimeout}
	return d.DialContext(r.ctx, network, target.String())
}

// converse sends a request on a new connection or socket and reads the answer, and repeats that while again returns
// true and the run is not over.
func (r *run) converse(network string, target netip.AddrPort, again func() bool) error {
	conn, err := r.dial(network, target)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		deadline := time.Now().Add(answerTimeout)
		if deadline.After(r.end) {
			deadline = r.end // What is unanswered then counts neither as answered nor as failed.
		}
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("?\n")); err != nil {
			return err
		}
		if _, err := in.ReadSlice('\n'); err != nil {
			return err
		}
		r.units.Add(1)
		if r.over() || !again() {
			return nil
		}
	}
}
