// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	// answerTimeout bounds the wait for a response, and for a connection.
	answerTimeout = time.Second
	// surviveTimeout is how long an open connection may stall and still count as alive: six retransmissions (RFC 6298
	// section 5.5).
	surviveTimeout = 20 * time.Second
	// keepAlive is the idle time after which the client's kernel sends keepalives on an open connection.
	keepAlive = time.Second
)

// Options configures a run.
type Options struct {
	// Answered, if set, is called once, when every stream has received its first response. Complete, if set, is called
	// once after that, when every flow and connection has received its first response or has failed. Neither is called
	// after Run has returned.
	Answered, Complete func()
	// Confirm is how long a flow or connection may take to be answered once more after the run (Flow.Answering). Zero
	// omits that.
	Confirm time.Duration
}

// Run sends requests until the context is done, and returns the result of each stream, in the order of specs.
func Run(ctx context.Context, specs []Spec, o Options) ([]Result, error) {
	streams, end, err := newStreams(specs, o)
	if err != nil {
		return nil, err
	}
	defer end()
	return run(ctx, streams), nil
}

// newStreams returns the streams, and what ends the calls of o.Answered and o.Complete.
func newStreams(specs []Spec, o Options) (_ []*stream, end func(), _ error) {
	streams := make([]*stream, len(specs))
	var streamsFirst, flowsFirst sync.WaitGroup
	for i, spec := range specs {
		spec, err := spec.complete()
		if err != nil {
			return nil, nil, err
		}
		streamsFirst.Add(1)
		flowsFirst.Add(spec.Count)
		streams[i] = newStream(spec, streamsFirst.Done, flowsFirst.Done)
		streams[i].confirm = o.Confirm
	}
	var mu sync.Mutex
	ended := false
	call := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		if f != nil && !ended {
			f()
		}
	}
	go func() { // Runs until the program exits if a stream never receives a response.
		streamsFirst.Wait()
		call(o.Answered)
		flowsFirst.Wait()
		call(o.Complete)
	}()
	return streams, func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}, nil
}

func run(ctx context.Context, streams []*stream) []Result {
	results := make([]Result, len(streams))
	var all sync.WaitGroup
	for i, s := range streams {
		all.Go(func() {
			s.run(ctx)
			results[i] = s.result()
		})
	}
	all.Wait()
	return results
}

// stream runs one Spec and collects its result.
type stream struct {
	spec  Spec
	start time.Time
	// first is called at the first response, flowFirst for each flow at its first response or failure.
	first, flowFirst func()

	wait    time.Duration // for a response: answerTimeout, except on a busy machine
	confirm time.Duration // Options.Confirm

	mu     sync.Mutex
	saw    Result
	times  []time.Duration // send times of the requests that received a response
	delays []time.Duration // how long each of them waited for it
	tracks []*track
	length time.Duration
}

// track is one flow of a stream, guarded by the stream's mu.
type track struct {
	saw   Flow
	times []time.Duration
	// first is the stream's flowFirst.
	first func()
	// ended is when the run ended for the flow, zero before. Later requests only confirm it: they are not counted.
	ended time.Duration
	// confirmed is closed when one of them is answered.
	confirmed chan struct{}
}

// newTrack adds a flow.
func (s *stream) newTrack() *track {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &track{first: sync.OnceFunc(s.flowFirst), confirmed: make(chan struct{})}
	s.tracks = append(s.tracks, t)
	return t
}

func newStream(spec Spec, first, flowFirst func()) *stream {
	return &stream{
		spec: spec, start: time.Now(), first: sync.OnceFunc(first), flowFirst: flowFirst, wait: answerTimeout,
		saw: Result{Spec: spec, Backends: map[string]int{}, Clients: map[string]int{}, Errors: map[string]int{}},
	}
}

// run works until the context is done and then waits for the last responses. Responses after the end count as received,
// because only the length of the run is relevant.
func (s *stream) run(ctx context.Context) {
	var work sync.WaitGroup
	switch s.spec.Kind {
	case UDPFlow:
		for i := range s.spec.Count {
			work.Go(func() { s.flow(ctx, s.newTrack(), s.spec.source(i)) })
		}
	case UDPNew:
		work.Go(func() { s.each(ctx, func(ctx context.Context) { s.ask(ctx, "udp") }) })
	case TCPNew:
		work.Go(func() { s.each(ctx, func(ctx context.Context) { s.ask(ctx, "tcp") }) })
	case TCPLong:
		for i := range s.spec.Count {
			work.Go(func() { s.converse(ctx, s.newTrack(), s.spec.source(i)) })
		}
	}
	<-ctx.Done()
	s.length = time.Since(s.start)
	work.Wait()
}

// tick calls f at every interval until the context is done or f returns false.
func (s *stream) tick(ctx context.Context, f func() bool) {
	ticker := time.NewTicker(s.spec.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !f() {
				return
			}
		}
	}
}

// each starts f at every interval, without waiting for earlier calls, and returns when all calls have returned.
func (s *stream) each(ctx context.Context, f func(context.Context)) {
	var open sync.WaitGroup
	s.tick(ctx, func() bool {
		open.Go(func() { f(context.WithoutCancel(ctx)) })
		return true
	})
	open.Wait()
}

// ask sends one request from a new socket.
func (s *stream) ask(ctx context.Context, network string) {
	asked := s.sent(nil)
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, s.spec.Target.String())
	if err != nil {
		s.failed(err)
		return
	}
	defer conn.Close()
	answer, err := request(conn, bufio.NewReader(conn), asked, s.wait)
	if err != nil {
		s.failed(err)
		return
	}
	s.answered(nil, asked, answer)
}

// request writes a line and reads one.
func request(conn net.Conn, in *bufio.Reader, asked time.Duration, timeout time.Duration) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%d\n", asked); err != nil {
		return "", err
	}
	return in.ReadString('\n')
}

// converse sends requests on one connection until it fails. It enables keepalives, as a robust client does. If a
// gateway fails while a response is in flight, only the backend has data to retransmit. The new gateway learns the
// connection, and with it the external address of the backend, only when the client sends. A client that never sends
// waits indefinitely.
func (s *stream) converse(ctx context.Context, t *track, source uint16) {
	dialer := net.Dialer{
		Timeout:         surviveTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive},
		LocalAddr:       sourceOf("tcp", source),
	}
	conn, err := dialer.Dial("tcp", s.spec.Target.String())
	if err != nil {
		s.broken(t, err)
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func(asked time.Duration) bool {
		answer, err := request(conn, in, asked, surviveTimeout)
		if err != nil {
			s.broken(t, err)
			return false
		}
		s.stalled(t, time.Since(s.start)-asked)
		s.answered(t, asked, answer)
		return true
	}
	alive := true
	s.tick(ctx, func() bool {
		alive = ask(s.sent(t))
		return alive
	})
	if alive && s.confirm > 0 {
		ask(s.end(t))
	}
}

// sent counts a request for the stream and, if t is not nil, for its flow. It returns the send time.
func (s *stream) sent(t *track) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saw.Sent++
	if t != nil {
		t.saw.Sent++
	}
	return time.Since(s.start)
}

// answered records a response, "<backend> <client> ...".
func (s *stream) answered(t *track, asked time.Duration, answer string) {
	fields := strings.Fields(answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(fields) < 2 {
		s.saw.Errors[fmt.Sprintf("answer %q", answer)]++
		return
	}
	if t != nil && t.ended != 0 && asked >= t.ended {
		if !t.saw.Answering {
			t.saw.Answering = true
			close(t.confirmed)
		}
		return
	}
	s.times = append(s.times, asked)
	s.delays = append(s.delays, time.Since(s.start)-asked)
	if t != nil {
		t.first()
		t.times = append(t.times, asked)
		t.saw.Backend = cmp.Or(t.saw.Backend, fields[0])
	}
	s.saw.Backends[fields[0]]++
	client := fields[1]
	if at, err := netip.ParseAddrPort(client); err == nil {
		client = at.Addr().String()
	}
	s.saw.Clients[client]++
	s.first()
}

func (s *stream) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saw.Errors[cause(err)]++
}

func (s *stream) broken(t *track, err error) {
	s.failed(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.saw.Broken = cause(err)
	t.first()
}

func (s *stream) stalled(t *track, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.saw.Stall = max(t.saw.Stall, d)
}

// cause returns the text of an error without ports, so that equal errors are counted together.
func cause(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
