// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"bufio"
	"io"
	"time"
)

// cut ends the line at once, because the path to the router failed: what is said to it waits for nothing.
func (l *line) cut(r *refusal) {
	l.hang(r.text)
	if router, _ := l.both(); router != nil {
		select {
		case l.turn <- struct{}{}:
			_ = router.SetWriteDeadline(time.Now().Add(lastWord))
			_, _ = router.Write(r.notification()) // It may not reach the router.
			l.said = true
			<-l.turn
		default: // A message is half written.
		}
	}
	l.close()
}

// refuse says the last word to the router, if there is a chance to.
func (l *line) refuse(r *refusal) {
	m := r.notification()
	timer := time.NewTimer(goodbye)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		if m != nil {
			router, _ := l.both()
			_ = router.SetWriteDeadline(time.Now().Add(goodbye))
			_, _ = router.Write(m) // It may not listen any more.
		}
		l.said = true
		<-l.turn
	case <-timer.C:
	}
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
