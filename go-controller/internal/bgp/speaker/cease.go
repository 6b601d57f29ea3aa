// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"io"
	"time"
)

// cut closes the connection at once, because the path to the router failed. It makes only a brief attempt to send the
// notification.
func (l *connection) cut(r *refusal) {
	l.closeSilently(r.text)
	if router, _ := l.both(); router != nil {
		select {
		case l.turn <- struct{}{}:
			_ = router.SetWriteDeadline(time.Now().Add(ceaseTimeout))
			_, _ = router.Write(r.notification()) // It may not reach the router.
			l.ceaseSent = true
			<-l.turn
		default: // A message is partially written.
		}
	}
	l.close()
}

// refuse sends the notification to the router, if that is possible in time.
func (l *connection) refuse(r *refusal) {
	m := r.notification()
	timer := time.NewTimer(cease)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		if m != nil {
			router, _ := l.both()
			_ = router.SetWriteDeadline(time.Now().Add(cease))
			_, _ = router.Write(m) // The router may have stopped reading.
		}
		l.ceaseSent = true
		<-l.turn
	case <-timer.C:
	}
}

// next reads a message into a buffer that has room for the longest one.
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
