// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

const (
	// keepalives are to be sent so often in a hold time (RFC 4271 section 4.4).
	keepalives = 3
	// holdAt is where an OPEN has its hold time (RFC 4271 section 4.2).
	holdAt = headerLength + 3
	// innerKeepalive is how often gobgp hears a KEEPALIVE where the router sends none: its own hold time is maxHold.
	innerKeepalive = time.Hour
)

// setHold sets the hold time in an OPEN.
func setHold(open []byte, hold time.Duration) {
	binary.BigEndian.PutUint16(open[holdAt:], uint16(hold/time.Second))
}

// timed reads from a router, for as long as the hold time lets it be silent.
type timed struct {
	line   *line
	router *net.TCPConn
	filter *filter
}

func (r *timed) Read(b []byte) (int, error) {
	if r.filter.stage > beginning { // Before that, await has set the deadline.
		var deadline time.Time
		if hold := r.filter.hold; hold > 0 {
			deadline = time.Now().Add(hold)
		}
		if err := r.router.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		if r.line.isEnding() { // And who ends it may have set a deadline just before.
			return 0, net.ErrClosed
		}
	}
	return r.router.Read(b)
}

// retime changes the time between KEEPALIVEs.
func (l *line) retime(n bgp.Neighbor) {
	l.mu.Lock()
	l.keepalive = n.Keepalive
	l.mu.Unlock()
	notice(l.retimed)
}

// interval is the time between two KEEPALIVEs: what is wanted, and a third of the hold time of both at most; 0
// for none (RFC 4271 section 4.4).
func (l *line) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if third := l.hold / keepalives; l.keepalive == 0 || third < l.keepalive {
		return third
	}
	return l.keepalive
}

// keep sends KEEPALIVEs until the line ends, from the time that the first one, which is gobgp's, went out.
func (l *line) keep() {
	inner := time.NewTicker(innerKeepalive)
	defer inner.Stop()
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-l.ending:
			return
		case <-inner.C:
			if _, ours := l.both(); ours != nil && l.look().phase == Established {
				_, _ = ours.Write(keepalive()) // Who reads it sees the error, too.
			}
			continue
		case <-timer.C:
			l.sendKeepalive()
		case <-l.retimed:
		}
		timer.Stop()
		if interval := l.interval(); l.look().kept && interval > 0 {
			timer.Reset(interval)
		}
	}
}

// sendKeepalive does nothing while something else is sent, which is as good.
func (l *line) sendKeepalive() {
	select {
	case l.turn <- struct{}{}:
		<-l.turn
	default:
		return
	}
	if router, _ := l.both(); router != nil {
		if err := l.tell(router, compose(packet.BGP_MSG_KEEPALIVE)); err != nil && !errors.Is(err, net.ErrClosed) {
			l.hang(err.Error()) // A part of the message may have gone out, and nothing fits behind that.
		}
	}
}

// silence is why a router that took the connection may say nothing.
func (l *line) silence(n bgp.Neighbor, f *filter) string {
	if f.stage > beginning {
		return fmt.Sprintf("hold timer expired: the peer sent nothing for %s", f.hold)
	}
	text := fmt.Sprintf("the peer took the connection and sent no OPEN message within %s", l.patience)
	if n.SecurityHops > 0 {
		text += fmt.Sprintf(": does it have TTL security too, and is it within %d hops?", n.SecurityHops)
	}
	return text
}
