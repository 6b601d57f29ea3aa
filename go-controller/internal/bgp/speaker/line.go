// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// openWait is how long a router has to answer our OPEN with its own. RFC 4271 suggests 4 min.
	openWait = 10 * time.Second
	// joinWait is for gobgp, which dials after 1-2 s.
	joinWait = 10 * time.Second
	// refreshPause is between two requests for our routes that are passed on: each is all of them.
	refreshPause = 500 * time.Millisecond
	// batch bounds what is written to a router at once.
	batch = 1 << 16
	// lastWord bounds the wait of who says a last word to a router that can't be reached.
	lastWord = 10 * time.Millisecond
)

// line is the connection with a router, and gobgp's end of it: either may come first. What gobgp says is
// passed as it is, what the router says through the filter. A line buffers a batch and a message: who doesn't read
// holds up the other.
//
// It ends by itself when either side closes, and then waits for a moment until the other has
// taken what was said last.
type line struct {
	door *door
	wake func()
	// turn is held by who writes to the router.
	turn chan struct{}
	// joined is closed when gobgp's connection is there, attached when the router's is, ending when the line is
	// to end, done when it has.
	joined, attached, ending, done chan struct{}

	// patience is openWait.
	patience time.Duration
	// retimed has a token if keepalive or hold changed.
	retimed chan struct{}

	mu sync.Mutex
	// router and ours are nil until they are there.
	router, ours *net.TCPConn
	ends         bool
	// hold bounds the silence of the router, and a write to it: 0 for not at all. keepalive is what the node wants
	// between two KEEPALIVEs.
	hold, keepalive time.Duration
	// said: the last word to the router was said. It is guarded by turn.
	said bool
	seen seen
	// opened and agreed: our OPEN went out, and the router's KEEPALIVE came.
	opened, agreed bool
}

// seen is what is known of a session.
type seen struct {
	phase Phase
	since time.Time
	// over: all that is to be said is said. The session was Established for lasted, 0 if it never was.
	over   bool
	lasted time.Duration
	asn    uint32
	local  netip.Addr
	// kept: our first KEEPALIVE went out.
	kept bool
	// why it ended or ends: what was known first.
	why string
}

// newLine returns a line to a neighbor that waits for both ends. wake is called, without blocking, when there is news in look.
func newLine(n bgp.Neighbor, wake func()) (*line, error) {
	d, err := newDoor()
	if err != nil {
		return nil, err
	}
	return &line{
		door: d, wake: wake, turn: make(chan struct{}, 1),
		joined: make(chan struct{}), attached: make(chan struct{}), ending: make(chan struct{}), done: make(chan struct{}),
		retimed: make(chan struct{}, 1), patience: openWait, hold: openWait, keepalive: n.Keepalive, seen: seen{phase: Active, since: time.Now()},
	}, nil
}

// attach takes over the connection with the router, once, and closes it if the line has ended.
func (l *line) attach(router *net.TCPConn) {
	ends := false
	l.change(func() {
		if ends = l.ends; !ends {
			l.router, l.seen.local = router, router.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
			l.await()
			close(l.attached)
		}
	})
	if ends {
		_ = router.Close() // Nothing was said on it.
	}
}

// await gives the router the time to send its OPEN from when ours can be sent. The caller holds mu.
func (l *line) await() {
	if l.router != nil && l.ours != nil && !l.ends {
		_ = l.router.SetReadDeadline(time.Now().Add(l.patience)) // It may be closed.
	}
}

// both are the ends of the line: nil for one that is not there.
func (l *line) both() (router, ours *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.router, l.ours
}

// run passes messages until the line ends.
func (l *line) run(n bgp.Neighbor) {
	var running sync.WaitGroup
	running.Go(func() { l.hear(n) })
	running.Go(func() { l.speak(n) })
	running.Go(l.keep)
	running.Wait()
	l.close()
	l.change(func() { l.seen.over = true })
	close(l.done)
	l.wake()
}

// end ends the line, and lets the router hear what gobgp said last for no longer than a time.
func (l *line) end(within time.Duration) {
	l.hang("")
	if router, _ := l.both(); router != nil {
		_ = router.SetWriteDeadline(time.Now().Add(within)) // It may be closed.
	}
	timer := time.NewTimer(2 * within)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
		l.close()
		<-l.done
	}
}

// look is what is known now.
func (l *line) look() seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// change changes what is known, and wakes if that is news.
func (l *line) change(f func()) {
	l.mu.Lock()
	was := l.seen
	f()
	next := was.phase
	switch {
	case l.ends:
		next = Idle
	case l.seen.kept && l.agreed:
		next = Established
	case l.seen.kept:
		next = OpenConfirm
	case l.opened:
		next = OpenSent
	case l.router != nil:
		next = Connect
	}
	if next != l.seen.phase {
		l.seen.phase, l.seen.since = next, time.Now()
	}
	news := was != l.seen
	l.mu.Unlock()
	if news {
		l.wake()
	}
}

// hang lets the line end. The first reason given is the one.
func (l *line) hang(why string) {
	l.change(func() {
		if !l.ends {
			l.ends = true
			close(l.ending)
			if l.seen.phase == Established {
				l.seen.lasted = max(time.Since(l.seen.since), 1)
			}
			l.seen.asn = 0
		}
		if l.seen.why == "" {
			l.seen.why = why
		}
	})
	l.door.close()
}

// close closes all connections.
func (l *line) close() {
	l.door.close()
	router, ours := l.both()
	for _, conn := range []*net.TCPConn{ours, router} {
		if conn != nil {
			_ = conn.Close() // What was to be said is said.
		}
	}
}

// hear passes what the router says until it says no more, or something wrong.
func (l *line) hear(n bgp.Neighbor) {
	select {
	case <-l.attached:
	case <-l.ending:
		if _, ours := l.both(); ours != nil {
			_ = ours.Close()
		}
		return
	}
	router, _ := l.both()
	f := filter{neighbor: n}
	err := l.listen(router, &f)
	var r *refusal
	var said *farewell
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() && !l.isEnding() {
		err = &refusal{code: packet.BGP_ERROR_HOLD_TIMER_EXPIRED, text: l.silence(n, &f)}
	}
	switch {
	case errors.As(err, &r):
		l.hang(r.text)
		l.refuse(r)
	case errors.As(err, &said):
		l.hang(said.Error())
	case l.isEnding():
	case f.stage < talking:
		l.hang(closed)
	default:
		l.hang("the connection was lost")
	}
	if _, ours := l.both(); ours != nil { // gobgp closes its end then.
		_ = ours.CloseWrite()
		_ = ours.SetReadDeadline(time.Now().Add(goodbye))
	}
	// Closed with anything unread, a connection is reset, and what was said last may be lost.
	_ = router.SetReadDeadline(time.Now().Add(goodbye))
	_, _ = io.Copy(io.Discard, router)
}

func (l *line) isEnding() bool {
	select {
	case <-l.ending:
		return true
	default:
		return false
	}
}

// listen passes what the router says, and returns why it ends.
func (l *line) listen(router *net.TCPConn, f *filter) error {
	in, buf := bufio.NewReader(&timed{l, router, f}), make([]byte, maxMessage)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		m, err := next(in, buf)
		if err != nil {
			return err
		}
		m, err = f.take(m)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if m[typeAt] == packet.BGP_MSG_ROUTE_REFRESH {
			<-pause.C
			pause.Reset(refreshPause)
		}
		select {
		case <-l.joined:
		case <-l.ending:
			return net.ErrClosed
		}
		if m[typeAt] == packet.BGP_MSG_OPEN {
			l.change(func() { l.seen.asn, l.hold = f.asn, f.hold })
			setHold(m, maxHold)
		}
		if _, err := l.ours.Write(m); err != nil {
			<-l.ending // It has closed, and what it said last says why.
			return net.ErrClosed
		}
		if m[typeAt] == packet.BGP_MSG_KEEPALIVE {
			l.change(func() { l.agreed = true })
		}
	}
}

// speak passes what gobgp says, from when it comes.
func (l *line) speak(n bgp.Neighbor) {
	l.hang(l.talk(n).Error())
	if router, _ := l.both(); router != nil {
		_ = router.CloseWrite()
		_ = router.SetReadDeadline(time.Now().Add(goodbye))
	}
}

// talk passes what gobgp says, and returns why it ends, which it does.
func (l *line) talk(n bgp.Neighbor) error {
	ours, err := l.door.admit(joinWait)
	if err != nil {
		return fmt.Errorf("the BGP server did not come: %w", err)
	}
	l.mu.Lock()
	l.ours = ours
	l.await()
	l.mu.Unlock()
	if l.isEnding() { // And hear may not have seen the connection.
		_ = ours.Close()
	}
	close(l.joined)
	select { // gobgp's OPEN waits.
	case <-l.attached:
	case <-l.ending:
		return net.ErrClosed
	}
	router, _ := l.both()
	in, buf := bufio.NewReaderSize(ours, batch), make([]byte, maxMessage)
	var out []byte
	for {
		m, err := next(in, buf)
		if err != nil {
			return errors.New("the BGP server closed the session")
		}
		if m[typeAt] == packet.BGP_MSG_OPEN {
			setHold(m, n.Hold)
		}
		if m[typeAt] != packet.BGP_MSG_KEEPALIVE || !l.look().kept { // All KEEPALIVEs but the first are keep's.
			out = append(out, m...)
			l.went(m)
		}
		if in.Buffered() > 0 && len(out) <= batch-maxMessage {
			continue
		}
		if len(out) == 0 {
			continue
		}
		if err := l.tell(router, out); err != nil {
			return err
		}
		out = out[:0]
	}
}

// went notes what a message of gobgp's means for the session.
func (l *line) went(m []byte) {
	switch m[typeAt] {
	case packet.BGP_MSG_OPEN:
		l.change(func() { l.opened = true })
	case packet.BGP_MSG_KEEPALIVE:
		l.change(func() { l.seen.kept = true })
		notice(l.retimed)
	case packet.BGP_MSG_NOTIFICATION:
		l.hang("sent notification: " + packet.NewNotificationErrorCode(m[headerLength], m[headerLength+1]).String())
	}
}

// tell writes whole messages to the router.
func (l *line) tell(router *net.TCPConn, out []byte) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.said {
		return net.ErrClosed
	}
	l.mu.Lock()
	hold, deadline := l.hold, time.Time{}
	if hold > 0 {
		deadline = time.Now().Add(hold)
	}
	l.mu.Unlock()
	if err := router.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err := router.Write(out)
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return fmt.Errorf("the peer took nothing of what was sent to it for %s, the hold time", hold)
	}
	if err != nil {
		return errors.New("the connection was lost")
	}
	return nil
}
