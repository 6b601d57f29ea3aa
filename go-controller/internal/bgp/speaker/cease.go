// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"io"
	"time"
)

// closeOnPathFailure closes the connection at once, because the path to the router failed. It makes only a brief
// attempt to send the notification.
func (l *connection) closeOnPathFailure(r *notificationError) {
	l.beginClose(r.reason())
	if router, _ := l.conns(); router != nil {
		select {
		case l.writeLock <- struct{}{}:
			_ = router.SetWriteDeadline(time.Now().Add(ceaseTimeout))
			if _, err := router.Write(r.notification()); err == nil { // It may not reach the router.
				l.change(func() { l.seen.notifications.sent++ })
			}
			l.ceaseSent = true
			<-l.writeLock
		default: // A message is partially written.
		}
	}
	l.close()
}

// sendNotification sends the notification to the router, if that is possible in time.
func (l *connection) sendNotification(r *notificationError) {
	m := r.notification()
	timer := time.NewTimer(cease)
	defer timer.Stop()
	select {
	case l.writeLock <- struct{}{}:
		if m != nil {
			router, _ := l.conns()
			_ = router.SetWriteDeadline(time.Now().Add(cease))
			if _, err := router.Write(m); err == nil { // The router may have stopped reading.
				l.change(func() { l.seen.notifications.sent++ })
			}
		}
		l.ceaseSent = true
		<-l.writeLock
	case <-timer.C:
	}
}

// next reads a message into a buffer that has room for the longest one.
func next(in *bufio.Reader, buf []byte) ([]byte, error) {
	if _, err := io.ReadFull(in, buf[:headerLength]); err != nil {
		return nil, err
	}
	length, r := messageLength(buf)
	if r != nil {
		return nil, r
	}
	if _, err := io.ReadFull(in, buf[headerLength:length]); err != nil {
		return nil, err
	}
	return buf[:length], nil
}
