// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

const (
	// retryEvery is the interval between two attempts to open a socket.
	retryEvery = time.Second
	// adminDownPeriod is how long AdminDown is sent: at least three times if the peer can receive that.
	adminDownPeriod = 2500 * time.Millisecond
)

// Target is the peer of a session and its settings.
type Target struct {
	// Peer is the address of the other end. A link-local address needs a zone or an Interface.
	Peer netip.Addr
	// Local is the address to send from, to which the peer sends; the zero Addr leaves it to the routing table.
	Local netip.Addr
	// Interface is the interface on which packets are sent and received; empty for any.
	Interface string
	Settings  bfd.Settings
}

// Session is the observed state of a session.
type Session struct {
	bfd.Status
	// Err is the error that prevents packets from being sent or received, or the reason why the peer's packets are
	// rejected while the session is not Up.
	Err error
}

// Watcher runs BFD sessions. Its methods are safe for concurrent use.
type Watcher struct {
	notify func(name string, s Session)

	mu sync.Mutex
	// network is nil while Run is not running. open opens it.
	network network
	open    func() (network, error)
	// sessions is searched for each packet and in each iteration, which is cheap for hundreds of sessions.
	sessions []*session
	ports    [kinds]port
}

// New returns a Watcher without sessions. It does nothing before Run. notify is called in Run's goroutine with the
// latest state and error when they have changed. It must not block, and may call the Watcher. It may be nil.
func New(notify func(name string, s Session)) *Watcher {
	if notify == nil {
		notify = func(string, Session) {}
	}
	w := &Watcher{notify: notify, open: newKernel}
	for k := range w.ports {
		w.ports[k].kind = kind(k)
	}
	return w
}

// Watch starts a session, or changes the timers of the existing one, of which the peer is informed by a poll sequence.
// If the peer, address, interface or kind differs, Watch starts a new session and leaves the old one.
func (w *Watcher) Watch(name string, t Target) {
	t = t.plain()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.find(name)
	if s == nil || !s.target.sameAs(t) {
		if s != nil {
			s.leaving, s.replaced = true, true
		}
		s = newSession(name, t)
		w.sessions = append(w.sessions, s)
	}
	s.target, s.leaving = t, false
	w.wake()
}

// wake makes Run do what has become due. The caller holds mu.
func (w *Watcher) wake() {
	if w.network != nil {
		w.network.wake()
	}
}

// Leave informs the peer that the session is administratively down, and then removes the session. Session returns it
// until that is done, about 2.5 s later.
func (w *Watcher) Leave(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.find(name); s != nil {
		s.leaving = true
		w.wake()
	}
}

// Session returns the session of that name, and false if there is none.
func (w *Watcher) Session(name string) (Session, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.find(name)
	if s == nil {
		return Session{}, false
	}
	return w.view(s), true
}

func (w *Watcher) find(name string) *session {
	for _, s := range w.sessions {
		if s.name == name && !s.replaced {
			return s
		}
	}
	return nil
}

func (w *Watcher) view(s *session) Session {
	v := Session{Status: bfd.Status{State: bfd.Down, Since: s.since}, Err: s.trouble}
	if s.machine != nil {
		v.Status = s.machine.Status()
	}
	if v.Err == nil && v.State != bfd.Up {
		v.Err = s.refused
	}
	if err := w.ports[s.kind].err; err != nil {
		v.Err = err
	}
	return v
}

// Run runs the sessions until the context ends. It may be called once. At the end it stops without informing the peers
// (Leave does that), so that they do not take an upgrade for the action of an administrator. The BGP sessions that BFD
// monitors must also end then, within a detection time: a router that loses BGP first keeps the routes (graceful
// restart), one that loses BFD first withdraws them. Sockets are opened in the network namespace of Run's thread.
func (w *Watcher) Run(ctx context.Context) error {
	n, err := w.open()
	if err != nil {
		return fmt.Errorf("keep BFD sessions: %w", err)
	}
	w.mu.Lock()
	w.network = n
	w.mu.Unlock()
	defer w.close()
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wake()
	})()
	for ctx.Err() == nil {
		until, changed := w.step(time.Now())
		for _, n := range changed {
			w.notify(n.name, n.Session)
		}
		if err := n.wait(until); err != nil {
			return fmt.Errorf("keep BFD sessions: wait for packets: %w", err)
		}
	}
	return nil
}

type event struct {
	name string
	Session
}

// step does everything that is due now. It returns the time of its next call if no packet arrives before (the zero time
// means never), and the changed sessions.
func (w *Watcher) step(now time.Time) (until time.Time, changed []event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Sessions that have ended need no port.
	w.sessions = slices.DeleteFunc(w.sessions, func(s *session) bool { return s.isOver(now) })
	w.openPorts(now)
	for k := range w.ports {
		w.ports[k].read(func(d datagram) { w.receive(now, kind(k), d) })
	}
	for _, s := range w.sessions {
		if w.ports[s.kind].receiver != nil {
			until = earlier(until, s.step(now, w.network, w.claimed))
		}
		if v := w.view(s); !s.replaced && (!s.notified.Since.Equal(v.Since) || text(s.notified.Err) != text(v.Err)) {
			s.notified = v
			changed = append(changed, event{s.name, v})
		}
	}
	w.filterPorts(now) // states have changed
	for k := range w.ports {
		if p := &w.ports[k]; p.err != nil {
			until = earlier(until, p.retry)
		}
	}
	return until, changed
}

// openPorts opens the ports that sessions need, and closes the others.
func (w *Watcher) openPorts(now time.Time) {
	var needed [kinds]bool
	for _, s := range w.sessions {
		needed[s.kind] = true
	}
	for k := range w.ports {
		switch p := &w.ports[k]; {
		case !needed[k]:
			p.close()
		case p.receiver == nil && !now.Before(p.retry):
			p.open(w.network)
			p.retry = now.Add(retryEvery)
		}
	}
	w.filterPorts(now)
}

// filterPorts limits what the ports receive to what may count for the sessions in their present states.
func (w *Watcher) filterPorts(now time.Time) {
	var remotes [kinds][]remote
	for _, s := range w.sessions {
		remotes[s.kind] = append(remotes[s.kind], s.remote())
	}
	for k := range w.ports {
		w.ports[k].from(now, remotes[k])
	}
}

// receive passes a packet to its session. If two sessions monitor the same peer, the first that matches receives it.
func (w *Watcher) receive(now time.Time, k kind, d datagram) {
	p, err := bfd.Decode(d.payload)
	for _, s := range w.sessions {
		if s.kind != k || s.machine == nil || !s.matches(d) || p.Your != 0 && p.Your != s.machine.Discriminator() {
			continue
		}
		if err == nil {
			err = s.checkTTL(d.ttl)
		}
		if err != nil {
			s.refuse(fmt.Errorf("packet from %s: %w", d.from, err))
			return
		}
		s.refused = nil
		if p.Your != 0 || s.sinkPort == 0 { // Without our discriminator, the sender may not see our packets.
			s.openSink(k, d)
		}
		s.send(s.machine.Receive(now, p))
		return
	}
}

// claimed reports whether one of our sessions uses the source port.
func (w *Watcher) claimed(source uint16) bool {
	return slices.ContainsFunc(w.sessions, func(s *session) bool { return s.source == source })
}

// close ends all sessions without informing the peers.
func (w *Watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sessions {
		s.close()
	}
	w.sessions = nil
	for k := range w.ports {
		w.ports[k].close()
	}
	w.network.close()
	w.network = nil
}

// earlier returns the earlier of two times; the zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
