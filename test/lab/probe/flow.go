// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// flow sends requests from one socket and matches responses by the request that they repeat.
func (s *stream) flow(ctx context.Context, t *track, source uint16) {
	dialer := net.Dialer{LocalAddr: sourceOf("udp", source)}
	conn, err := dialer.DialContext(ctx, "udp", s.spec.Target.String())
	if err != nil {
		s.failed(err)
		return
	}
	var reader sync.WaitGroup
	reader.Go(func() { s.readFlow(conn, t) })
	s.tick(ctx, func() bool {
		if _, err := fmt.Fprintf(conn, "%d\n", s.sent(t)); err != nil {
			s.failed(err)
		}
		return true
	})
	// The last responses may still be in flight, unless a later request has been answered.
	inFlight := answerTimeout / 2
	if s.confirmFlow(conn, t) {
		inFlight = 0
	}
	if err := conn.SetReadDeadline(time.Now().Add(inFlight)); err != nil {
		s.failed(err)
	}
	reader.Wait()
	conn.Close()
}

// confirmFlow sends requests until one that was sent after the run is answered, for the time of confirm at most. It
// reports whether one was.
func (s *stream) confirmFlow(conn net.Conn, t *track) (answered bool) {
	if s.confirm == 0 {
		return false
	}
	s.end(t)
	ctx, cancel := context.WithTimeout(context.Background(), s.confirm)
	defer cancel()
	s.tick(ctx, func() bool {
		select {
		case <-t.confirmed:
			answered = true
			return false
		default:
		}
		if _, err := fmt.Fprintf(conn, "%d\n", time.Since(s.start)); err != nil {
			s.failed(err)
		}
		return true
	})
	return answered
}

// end marks the end of the run for a flow. It returns the time.
func (s *stream) end(t *track) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ended = time.Since(s.start)
	return t.ended
}

func (s *stream) readFlow(conn net.Conn, t *track) {
	buffer := make([]byte, 2048)
	for {
		n, err := conn.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // For example an ICMP error. It is counted, and the next response may still arrive.
			s.failed(err)
			continue
		}
		answer := strings.TrimSpace(string(buffer[:n]))
		at, err := strconv.ParseInt(answer[strings.LastIndexByte(answer, ' ')+1:], 10, 64)
		if err != nil {
			s.failed(fmt.Errorf("answer %q: %w", answer, err))
			continue
		}
		s.answered(t, time.Duration(at), answer)
	}
}
