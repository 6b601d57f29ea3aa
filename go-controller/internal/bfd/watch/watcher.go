// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
)

const (
	// retryEvery is the time between two attempts to open a socket.
	retryEvery = time.Second
	// farewell is how long AdminDown is told: three times at least if the peer can take that.
	farewell = 2500 * time.Millisecond
)

// Target is whom to watch, and how.
type Target struct {
	// Peer is the address of the other end. A link-local one has a zone, or an Interface.
	Peer netip.Addr
	// Local is the address to send from, and that the peer sends to; the zero Addr leaves it to the
	// routing table.
	Local netip.Addr
	// Interface that packets go out of and come in by; empty for any.
	Interface string
	Settings  bfd.Settings
}

// Session is what there is to know of a session.
type Session struct {
	bfd.Status
	// Err is what keeps packets from being sent or received, or why the peer's are refused while
	// the session is not Up.
	Err error
}

// Watcher keeps BFD sessions. Its methods may be called from any goroutine.
type Watcher struct {
	notify func(name string, s Session)

	mu sync.Mutex
	// bell wakes Run; nil while that does not run.
	bell *bell
	// sessions are looked through for each packet and at each turn, which is cheap for hundreds.
	sessions []*session
	ports    [kinds]port
}

// New returns a Watcher without sessions that does nothing before Run. Notify is told, in Run's
// goroutine, the newest state and error when they have changed since; it must not block, and may
// call the Watcher. Nil tells nobody.
func New(notify func(name string, s Session)) *Watcher {
	if notify == nil {
		notify = func(string, Session) {}
	}
	w := &Watcher{notify: notify}
	for k := range w.ports {
		w.ports[k].kind, w.ports[k].fd = kind(k), -1
	}
	return w
}

// Watch begins a session, or gives the one that is there other timers, of which the peer learns by a
// poll sequence. A session with another peer, address, interface or kind is a new one, and
// the old one is left.
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
	w.bell.ring()
}

// Leave tells the peer a few times that the session is administratively down, and forgets it then:
// Session has it until that is done, about 2.5 s later.
func (w *Watcher) Leave(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.find(name); s != nil {
		s.leaving = true
		w.bell.ring()
	}
}

// Session returns the session of that name; false if there is none.
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

// Run keeps the sessions until the context ends, once, and then stops in the middle of a word: peers are
// told nothing (Leave would do that), so that they don't take an upgrade for an administrator's
// will. What BFD watches has to end then, too, within a detection time: a router that loses
// BGP first keeps the routes (graceful restart), one that loses BFD first withdraws them.
// Sockets are opened in the network namespace of Run's thread.
func (w *Watcher) Run(ctx context.Context) error {
	b, err := newBell()
	if err != nil {
		return fmt.Errorf("keep BFD sessions: %w", err)
	}
	w.mu.Lock()
	w.bell = b
	w.mu.Unlock()
	defer w.close()
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bell.ring()
	})()
	for ctx.Err() == nil {
		fds, until, news := w.turn(time.Now())
		for _, n := range news {
			w.notify(n.name, n.Session)
		}
		if err := wait(fds, until); err != nil {
			return fmt.Errorf("keep BFD sessions: wait for packets: %w", err)
		}
	}
	return nil
}

type news struct {
	name string
	Session
}

// turn does all that is to be done now. It returns what to wait for: packets, or a time (never is
// the zero time); and what has changed.
func (w *Watcher) turn(now time.Time) (fds []unix.PollFd, until time.Time, changed []news) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bell.hush()
	w.openPorts(now)
	for k := range w.ports {
		w.ports[k].read(func(d datagram) { w.take(now, kind(k), d) })
	}
	w.sessions = slices.DeleteFunc(w.sessions, func(s *session) bool { return s.over(now) })
	fds = append(fds, unix.PollFd{Fd: int32(w.bell.fd), Events: unix.POLLIN})
	for k := range w.ports {
		if p := &w.ports[k]; p.fd >= 0 {
			fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
		} else if p.err != nil {
			until = earlier(until, p.retry)
		}
	}
	for _, s := range w.sessions {
		if w.ports[s.kind].fd >= 0 {
			until = earlier(until, s.attend(now, w.claimed))
		}
		if v := w.view(s); !s.replaced && (!s.told.Since.Equal(v.Since) || text(s.told.Err) != text(v.Err)) {
			s.told = v
			changed = append(changed, news{s.name, v})
		}
	}
	return fds, until, changed
}

// openPorts has those open that sessions need, and no others.
func (w *Watcher) openPorts(now time.Time) {
	var needed [kinds]bool
	for _, s := range w.sessions {
		needed[s.kind] = true
	}
	for k := range w.ports {
		switch p := &w.ports[k]; {
		case !needed[k]:
			p.close()
		case p.fd < 0 && !now.Before(p.retry):
			p.open()
			p.retry = now.Add(retryEvery)
		}
	}
}

// take gives a packet to its session. The first one that wants it has it, should two watch the
// same peer.
func (w *Watcher) take(now time.Time, k kind, d datagram) {
	p, err := bfd.Decode(d.payload)
	for _, s := range w.sessions {
		if s.kind != k || s.machine == nil || !s.mayBeFrom(d) || p.Your != 0 && p.Your != s.machine.Discriminator() {
			continue
		}
		if err == nil {
			err = s.far(d.ttl)
		}
		if err != nil {
			s.refuse(fmt.Errorf("packet from %s: %w", d.from, err))
			return
		}
		s.refused = nil
		s.send(s.machine.Hear(now, p))
		return
	}
}

// claimed is whether a session of ours has the source port.
func (w *Watcher) claimed(source uint16) bool {
	return slices.ContainsFunc(w.sessions, func(s *session) bool { return s.source == source })
}

// close ends all sessions without a word.
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
	w.bell.close()
	w.bell = nil
}

// earlier is the first of two times of which the zero time is never.
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
