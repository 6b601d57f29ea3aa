// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

// forwardToRouter passes messages from gobgp as soon as they arrive.
func (l *connection) forwardToRouter(n bgp.Neighbor) {
	l.beginClose(l.copyToRouter(n))
	if router, _ := l.conns(); router != nil {
		_ = router.CloseWrite()
		_ = router.SetReadDeadline(time.Now().Add(l.lastRead))
	}
}

// copyToRouter passes messages from gobgp until that fails, and returns why.
func (l *connection) copyToRouter(n bgp.Neighbor) reason {
	ours, err := l.listener.accept(joinWait)
	if err != nil {
		return reason{text: fmt.Sprintf("the BGP server did not connect: %v", err), kind: detected}
	}
	l.mu.Lock()
	l.ours = ours
	l.startOpenTimer()
	l.mu.Unlock()
	if l.isEnding() { // receive may have missed this connection.
		_ = ours.Close()
	}
	close(l.joined)
	select { // Hold back gobgp's OPEN until then.
	case <-l.attached:
	case <-l.ending:
		return reason{}
	}
	router, _ := l.conns()
	in, buf := bufio.NewReaderSize(ours, batch), make([]byte, maxMessage)
	var out []byte
	for {
		m, err := next(in, buf)
		if err != nil {
			return reason{text: "the BGP server closed the session", kind: detected}
		}
		if m[typeAt] == packet.BGP_MSG_OPEN {
			setHold(m, n.Hold)
		}
		if m[typeAt] != packet.BGP_MSG_KEEPALIVE || !l.observed().keepaliveSent { // sendKeepalives sends all but the first.
			out = append(out, m...)
			l.onSent(m)
		}
		if in.Buffered() > 0 && len(out) <= batch-maxMessage {
			continue
		}
		if len(out) == 0 {
			continue
		}
		if why, ok := l.write(router, out); !ok {
			return why
		}
		if m[typeAt] == packet.BGP_MSG_NOTIFICATION { // the last message
			l.change(func() { l.seen.notifications.sent++ })
		}
		out = out[:0]
	}
}

// onSent updates the state of the session for a message from gobgp.
func (l *connection) onSent(m []byte) {
	switch m[typeAt] {
	case packet.BGP_MSG_OPEN:
		l.change(func() { l.openSent = true })
	case packet.BGP_MSG_KEEPALIVE:
		l.change(func() { l.seen.keepaliveSent = true })
		signal(l.retimed)
	case packet.BGP_MSG_NOTIFICATION:
		name := notificationName(m[headerLength], m[headerLength+1])
		l.beginClose(reason{text: "sent notification: " + name, kind: detected})
	}
}

// write writes complete messages to the router. If that fails, it returns false, and the reason unless the connection
// is being closed.
func (l *connection) write(router *net.TCPConn, out []byte) (reason, bool) {
	l.writeLock <- struct{}{}
	defer func() { <-l.writeLock }()
	if l.ceaseSent {
		return reason{}, false
	}
	l.mu.Lock()
	hold, deadline := l.hold, l.lastWrite
	if deadline.IsZero() && hold > 0 {
		deadline = time.Now().Add(hold)
	}
	err := router.SetWriteDeadline(deadline) // With the lock held, so that it does not replace that of limitWrites.
	l.mu.Unlock()
	if err != nil {
		return reason{}, false
	}
	_, err = router.Write(out)
	var slow net.Error
	switch {
	case err == nil:
		return reason{}, true
	case !errors.As(err, &slow) || !slow.Timeout():
		return reason{text: lost, kind: unexplained}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lastWrite.IsZero() {
		return reason{text: "the peer accepted no data before the session was closed", kind: detected}, false
	}
	return reason{text: fmt.Sprintf("the peer accepted no data for the hold time of %s", hold), kind: detected}, false
}
