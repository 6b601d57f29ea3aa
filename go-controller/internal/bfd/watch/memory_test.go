// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

// latency is the time that a packet takes in memory.
const latency = time.Millisecond

// segment connects Watchers in the memory of a synctest bubble: what is sent to an address arrives at the host that
// has it.
type segment struct {
	mu    sync.Mutex
	hosts []*host
	// flying are the packets on their way, in the order in which they were sent and arrive.
	flying []packet
	// lossy drops all packets.
	lossy bool
}

// packet is a datagram to a port of a kind.
type packet struct {
	datagram
	kind kind
}

// host is the network of a Watcher on a segment.
type host struct {
	segment *segment
	wakeups chan struct{}

	// The fields below are guarded by segment.mu.
	addrs map[netip.Addr]bool
	// taken are the ports that another agent has, pending the packets that wait in our open ports.
	taken   map[kind]bool
	pending map[kind][]datagram
	// sinks is how often a sink was opened.
	sinks int
	// suspended is until when the process does not run.
	suspended time.Time
}

func (h *host) listen(k kind) (receiver, error) {
	h.segment.mu.Lock()
	defer h.segment.mu.Unlock()
	if h.taken[k] {
		return nil, syscall.EADDRINUSE
	}
	h.pending[k] = []datagram{}
	return memoryPort{h, k}, nil
}

func (h *host) dial(t Target, k kind, _ uint16) (transmitter, int, error) {
	h.segment.mu.Lock()
	defer h.segment.mu.Unlock()
	if !h.addrs[t.Local] {
		return nil, 0, syscall.EADDRNOTAVAIL
	}
	return memoryWay{h, t, k}, 0, nil
}

func (h *host) wait(until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-h.wakeups:
	case <-due:
	}
	h.segment.mu.Lock()
	suspended := h.suspended
	h.segment.mu.Unlock()
	if left := time.Until(suspended); left > 0 {
		<-time.After(left)
	}
	return nil
}

func (h *host) wake() {
	select {
	case h.wakeups <- struct{}{}:
	default:
	}
}

func (h *host) sink(kind, datagram) (io.Closer, error) {
	h.set(func(h *host) { h.sinks++ })
	return io.NopCloser(nil), nil
}

func (*host) close() {}

// set changes the host.
func (h *host) set(change func(*host)) {
	h.segment.mu.Lock()
	defer h.segment.mu.Unlock()
	change(h)
}

type memoryWay struct {
	host *host
	Target
	kind kind
}

func (w memoryWay) write(b []byte) error {
	s := w.host.segment
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.host.addrs[w.Local] {
		return syscall.EADDRNOTAVAIL
	}
	if s.lossy {
		return nil
	}
	d := datagram{from: w.Local, to: w.Peer, ttl: 255, source: firstSource, payload: bytes.Clone(b)}
	s.flying = append(s.flying, packet{d, w.kind})
	// Timers of the same instant fire in any order: each delivers the packet that was sent first, not its own.
	time.AfterFunc(latency, s.deliver)
	return nil
}

// deliver passes the first of the flying packets to the hosts that have its address.
func (s *segment) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.flying[0]
	s.flying = s.flying[1:]
	for _, h := range s.hosts {
		if packets, open := h.pending[p.kind]; open && h.addrs[p.to] {
			h.pending[p.kind] = append(packets, p.datagram)
			h.wake()
		}
	}
}

func (memoryWay) close() {}

type memoryPort struct {
	host *host
	kind kind
}

// from implements receiver. Packets of others than the peers are ignored all the same.
func (memoryPort) from([]remote) error { return nil }

func (p memoryPort) read(take func(datagram)) {
	p.host.segment.mu.Lock()
	packets := p.host.pending[p.kind]
	p.host.pending[p.kind] = []datagram{}
	p.host.segment.mu.Unlock()
	for _, d := range packets {
		take(d)
	}
}

func (p memoryPort) close() { p.host.set(func(h *host) { delete(h.pending, p.kind) }) }

// setLossy makes the segment drop all packets, or none.
func (s *segment) setLossy(lossy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lossy = lossy
}

// watched is a Watcher on a host, and what it has notified.
type watched struct {
	*Watcher
	*host
	stop func()

	mu       sync.Mutex
	notified map[string][]Session
}

// join runs a Watcher on a new host with addresses until the test ends.
func (s *segment) join(t *testing.T, addrs ...string) *watched {
	t.Helper()
	h := &host{segment: s, wakeups: make(chan struct{}, 1), addrs: map[netip.Addr]bool{}, taken: map[kind]bool{},
		pending: map[kind][]datagram{}}
	for _, a := range addrs {
		h.addrs[netip.MustParseAddr(a)] = true
	}
	s.mu.Lock()
	s.hosts = append(s.hosts, h)
	s.mu.Unlock()
	w := &watched{host: h, notified: map[string][]Session{}}
	w.Watcher = New(func(name string, s Session) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notified[name] = append(w.notified[name], s)
	})
	w.open = func() (network, error) { return h, nil }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// states returns the states that were notified for a session.
func (w *watched) states(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var states []bfd.State
	for _, s := range w.notified[name] {
		states = append(states, s.State)
	}
	return fmt.Sprintf("%v", states)
}

// lastFailure returns the diagnostic of the last failure that was notified for a session.
func (w *watched) lastFailure(name string) (last bfd.Diagnostic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.notified[name] {
		if s.Diagnostic != bfd.NoDiagnostic {
			last = s.Diagnostic
		}
	}
	return last
}

// target returns the target of the local address.
func target(local, peer string, s bfd.Settings) Target {
	return Target{Local: netip.MustParseAddr(local), Peer: netip.MustParseAddr(peer), Settings: s}
}

// every returns settings with one interval for both directions.
func every(interval time.Duration) bfd.Settings {
	return bfd.Settings{Transmit: interval, Receive: interval, Multiplier: 3}
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// expect checks the state of a session.
func (w *watched) expect(t *testing.T, when, name string, want bfd.State) Session {
	t.Helper()
	s, _ := w.Session(name)
	if s.State != want {
		t.Errorf("%s: %s is %s (%v), want %s", when, name, s.State, s.Err, want)
	}
	return s
}
