// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// keepalives is the number of KEEPALIVEs per hold time (RFC 4271 section 4.4).
	keepalives = 3
	// holdAt is the offset of the hold time in an OPEN (RFC 4271 section 4.2).
	holdAt = headerLength + 3
	// innerKeepalive is the interval of KEEPALIVEs to gobgp, which are needed if the router sends none. gobgp's own
	// hold time is maxHold.
	innerKeepalive = time.Hour
)

// setHold sets the hold time in an OPEN.
func setHold(open []byte, hold time.Duration) {
	binary.BigEndian.PutUint16(open[holdAt:], uint16(hold/time.Second))
}

// deadlineReader reads from a router. A read fails if the router is silent for the hold time.
type deadlineReader struct {
	connection *connection
	router     *net.TCPConn
	filter     *filter
}

func (r *deadlineReader) Read(b []byte) (int, error) {
	if r.filter.stage > beginning { // Before that, openTimeout applies.
		var deadline time.Time
		if hold := r.filter.hold; hold > 0 {
			deadline = time.Now().Add(hold)
		}
		if err := r.router.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		if r.connection.isEnding() { // The goroutine that ends it may have set a deadline.
			return 0, net.ErrClosed
		}
	}
	return r.router.Read(b)
}

// setKeepalive changes the interval between KEEPALIVEs.
func (l *connection) setKeepalive(n bgp.Neighbor) {
	l.mu.Lock()
	l.keepalive = n.Keepalive
	l.mu.Unlock()
	signal(l.retimed)
}

// interval returns the interval between two KEEPALIVEs: the configured one, but at most a third of the negotiated hold
// time; 0 for none (RFC 4271 section 4.4).
func (l *connection) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if third := l.hold / keepalives; l.keepalive == 0 || third < l.keepalive {
		return third
	}
	return l.keepalive
}

// sendKeepalives sends KEEPALIVEs until the connection ends, starting after the first one, which gobgp sends.
func (l *connection) sendKeepalives() {
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
			if _, ours := l.conns(); ours != nil && l.observed().phase == Established {
				_, _ = ours.Write(keepalive()) // The reader of ours sees the error, too.
			}
			continue
		case <-timer.C:
			l.sendKeepalive()
		case <-l.retimed:
		}
		timer.Stop()
		if interval := l.interval(); l.observed().keepaliveSent && interval > 0 {
			timer.Reset(interval)
		}
	}
}

// sendKeepalive does nothing while another message is being sent, which also resets the router's hold timer.
func (l *connection) sendKeepalive() {
	select {
	case l.writeLock <- struct{}{}:
		<-l.writeLock
	default:
		return
	}
	if router, _ := l.conns(); router != nil {
		if why, ok := l.write(router, newMessage(packet.BGP_MSG_KEEPALIVE)); !ok {
			l.beginClose(why) // A part may have been sent, so no message can follow.
		}
	}
}

// silenceMessage returns the error for a router that accepted the connection and is silent.
func (l *connection) silenceMessage(n bgp.Neighbor, f *filter) string {
	if f.stage > beginning {
		return fmt.Sprintf("hold timer expired: the peer sent nothing for %s", f.hold)
	}
	l.mu.Lock()
	text := fmt.Sprintf("the peer accepted the connection and sent no OPEN message within %s", l.openTimeout)
	l.mu.Unlock()
	if n.SecurityHops > 0 {
		text += fmt.Sprintf(": does it have TTL security too, and is it within %s?", world.Count(n.SecurityHops, "hop"))
	}
	return text
}
