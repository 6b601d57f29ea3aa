// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// chunk is the size of a request's body, which the responder confirms as a whole. It must be less than the 1 MiB that
// the responder accepts, and little beside what a stream carries: what it has not confirmed at the end is not counted.
const chunk = 64 << 10

// stream sends HTTP requests with bodies without waiting for the answers (RFC 9112 section 9.3.2), and counts the
// bytes of the requests that were answered.
func (r *run) stream(target netip.AddrPort) error {
	conn, err := r.dial("tcp", target)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(r.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var reader sync.WaitGroup
	var answers error
	reader.Go(func() {
		answers = r.confirmed(bufio.NewReader(conn))
		if answers != nil {
			conn.Close()
		}
	})
	request := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", target, chunk)
	request = append(request, make([]byte, chunk)...)
	for err == nil {
		_, err = conn.Write(request)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) { // A broken connection has no answers. The end of the run ends both.
		conn.Close()
	}
	reader.Wait()
	return errors.Join(err, answers)
}

// confirmed counts answers until the connection ends.
func (r *run) confirmed(in *bufio.Reader) error {
	for {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		r.units.Add(chunk)
	}
}
