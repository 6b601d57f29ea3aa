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
)

// line is the connection with a router, and gobgp's end of it. What gobgp says is passed as it is,
// what the router says through the filter. A line buffers a batch and a message: who doesn't read
// holds up the other.
//
// It ends by itself when either side closes, and then waits for a moment until the other has
// taken what was said last.
type line struct {
	router *net.TCPConn
	door   *door
	wake   func()
	// turn is held by who writes to the router, and kept by who says the last word.
	turn chan struct{}
	// joined is closed when gobgp's connection is there, ending when the line is to end, done when it has.
	joined, ending, done chan struct{}

	// patience is openWait.
	patience time.Duration

	mu   sync.Mutex
	ours *net.TCPConn
	ends bool
	hold time.Duration
	seen seen
	// opened, kept and agreed: our OPEN and KEEPALIVE went out, and the router's KEEPALIVE came.
	opened, kept, agreed bool
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
	// why it ended or ends: what was known first.
	why string
}

// newLine takes over the connection with a router, and closes it if it can't. wake is called, without
// blocking, when there is news in look.
func newLine(router *net.TCPConn, wake func()) (*line, error) {
	d, err := newDoor()
	if err != nil {
		_ = router.Close() // Nothing was said on it.
		return nil, err
	}
	return &line{
		router: router, door: d, wake: wake, turn: make(chan struct{}, 1),
		joined: make(chan struct{}), ending: make(chan struct{}), done: make(chan struct{}), patience: openWait, hold: openWait,
		seen: seen{phase: Connect, since: time.Now(), local: router.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()},
	}, nil
}

// run passes messages until the line ends.
func (l *line) run(n bgp.Neighbor) {
	var running sync.WaitGroup
	running.Go(func() { l.hear(n) })
	running.Go(l.speak)
	running.Wait()
	l.close()
	l.change(func() { l.seen.over = true })
	close(l.done)
	l.wake()
}

// end ends the line, and lets the router hear what gobgp said last for no longer than a time.
func (l *line) end(within time.Duration) {
	l.hang("")
	_ = l.router.SetWriteDeadline(time.Now().Add(within)) // It may be closed.
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
	case l.kept && l.agreed:
		next = Established
	case l.kept:
		next = OpenConfirm
	case l.opened:
		next = OpenSent
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
	l.mu.Lock()
	ours := l.ours
	l.mu.Unlock()
	if ours != nil {
		_ = ours.Close()
	}
	_ = l.router.Close() // What was to be said is said.
}

// hear passes what the router says until it says no more, or something wrong.
func (l *line) hear(n bgp.Neighbor) {
	f := filter{neighbor: n}
	err := l.listen(&f)
	var r *refusal
	var said *farewell
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() && f.stage == beginning && !l.isEnding() {
		err = &refusal{code: packet.BGP_ERROR_HOLD_TIMER_EXPIRED, text: l.silence(n)}
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
	l.mu.Lock()
	ours := l.ours
	l.mu.Unlock()
	if ours != nil { // gobgp closes its end then.
		_ = ours.CloseWrite()
		_ = ours.SetReadDeadline(time.Now().Add(goodbye))
	}
	// Closed with anything unread, a connection is reset, and what was said last may be lost.
	_ = l.router.SetReadDeadline(time.Now().Add(goodbye))
	_, _ = io.Copy(io.Discard, l.router)
}

func (l *line) isEnding() bool {
	select {
	case <-l.ending:
		return true
	default:
		return false
	}
}

// silence is why a router that took the connection may say nothing.
func (l *line) silence(n bgp.Neighbor) string {
	text := fmt.Sprintf("the peer took the connection and sent no OPEN message within %s", l.patience)
	if n.SecurityHops > 0 {
		text += fmt.Sprintf(": does it have TTL security too, and is it within %d hops?", n.SecurityHops)
	}
	return text
}

// listen passes what the router says, and returns why it ends.
func (l *line) listen(f *filter) error {
	in, buf := bufio.NewReader(l.router), make([]byte, maxMessage)
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
			if err := l.router.SetReadDeadline(time.Time{}); err != nil {
				return err
			}
			if l.isEnding() { // And who ends it may have set a deadline just before.
				return net.ErrClosed
			}
			l.change(func() { l.seen.asn, l.hold = f.asn, f.hold })
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

// refuse says the last word to the router, if there is a chance to.
func (l *line) refuse(r *refusal) {
	m := r.notification()
	timer := time.NewTimer(goodbye)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		if m != nil {
			_ = l.router.SetWriteDeadline(time.Now().Add(goodbye))
			_, _ = l.router.Write(m) // It may not listen any more.
		}
	case <-timer.C:
	}
}

// speak passes what gobgp says, from when it comes.
func (l *line) speak() {
	l.hang(l.talk().Error())
	_ = l.router.CloseWrite()
	_ = l.router.SetReadDeadline(time.Now().Add(goodbye))
}

// talk passes what gobgp says, and returns why it ends, which it does.
func (l *line) talk() error {
	ours, err := l.door.admit(joinWait)
	if err != nil {
		return fmt.Errorf("the BGP server did not come: %w", err)
	}
	l.mu.Lock()
	l.ours = ours
	l.mu.Unlock()
	_ = l.router.SetReadDeadline(time.Now().Add(l.patience))
	if l.isEnding() { // And hear may not have seen the connection.
		_ = l.router.SetReadDeadline(time.Now().Add(goodbye))
		_ = ours.Close()
	}
	close(l.joined)
	in, buf := bufio.NewReaderSize(ours, batch), make([]byte, maxMessage)
	var out []byte
	for {
		m, err := next(in, buf)
		if err != nil {
			return errors.New("the BGP server closed the session")
		}
		out = append(out, m...)
		l.went(m)
		if in.Buffered() > 0 && len(out) <= batch-maxMessage {
			continue
		}
		if err := l.tell(out); err != nil {
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
		l.change(func() { l.kept = true })
	case packet.BGP_MSG_NOTIFICATION:
		l.hang("sent notification: " + packet.NewNotificationErrorCode(m[headerLength], m[headerLength+1]).String())
	}
}

// tell writes whole messages to the router.
func (l *line) tell(out []byte) error {
	l.mu.Lock()
	hold := l.hold
	l.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
	default: // The last word was said.
		return net.ErrClosed
	}
	if err := l.router.SetWriteDeadline(time.Now().Add(hold)); err != nil {
		return err
	}
	_, err := l.router.Write(out)
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return fmt.Errorf("the peer took nothing of what was sent to it for %s, the hold time", hold)
	}
	if err != nil {
		return errors.New("the connection was lost")
	}
	<-l.turn
	return nil
}

// next reads a message into a buffer that holds the longest.
func next(in *bufio.Reader, buf []byte) ([]byte, error) {
	if _, err := io.ReadFull(in, buf[:headerLength]); err != nil {
		return nil, err
	}
	length, r := measure(buf)
	if r != nil {
		return nil, r
	}
	if _, err := io.ReadFull(in, buf[headerLength:length]); err != nil {
		return nil, err
	}
	return buf[:length], nil
}
