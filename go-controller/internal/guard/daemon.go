// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// probeTimeout is how long ovn-controller may take to answer.
const probeTimeout = 300 * time.Millisecond

// prober checks whether ovn-controller works.
type prober struct {
	dir string
	// waiting are the connections with a pending request, by socket. A hung daemon is sent only one request, because
	// its queue of connections is short.
	waiting map[string]net.Conn
}

func newProber(dir string) *prober { return &prober{dir, map[string]net.Conn{}} }

// check requests the version through the control sockets in the directory, as ovs-appctl(8) does.
func (p *prober) check(ctx context.Context) heartbeat {
	sockets, err := filepath.Glob(filepath.Join(p.dir, "ovn-controller.*.ctl"))
	if err != nil {
		return absent
	}
	sum := absent
	for _, socket := range sockets {
		sum = max(sum, p.probe(ctx, socket))
	}
	return sum
}

func (p *prober) probe(ctx context.Context, socket string) heartbeat {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if conn := p.waiting[socket]; conn != nil {
		if got := p.awaitReply(ctx, socket, conn); got >= silent {
			return got
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return crashed
	case errors.Is(err, os.ErrNotExist):
		return absent
	case err != nil:
		return silent
	}
	if _, err := conn.Write([]byte(`{"id":0,"method":"version","params":[]}`)); err != nil {
		conn.Close()
		return crashed
	}
	return p.awaitReply(ctx, socket, conn)
}

// awaitReply waits for the answer on a connection. If there is none yet, it keeps the connection for later.
func (p *prober) awaitReply(ctx context.Context, socket string, conn net.Conn) heartbeat {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline) // errors of the connection show when reading
	}
	var answer struct{ Result any }
	err := json.NewDecoder(conn).Decode(&answer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.waiting[socket] = conn
		return silent
	}
	conn.Close()
	delete(p.waiting, socket)
	if err != nil || answer.Result == nil {
		return crashed
	}
	return answered
}

// command runs a command in the daemon whose control socket matches a pattern, and returns its output
// (ovs-appctl(8)). Sockets left behind by crashed processes don't answer.
func command(ctx context.Context, pattern, method string, args ...string) (string, error) {
	sockets, err := filepath.Glob(pattern)
	if err != nil || len(sockets) == 0 {
		return "", errors.Join(err, fmt.Errorf("no daemon has a control socket %s", pattern))
	}
	var errs []error
	for _, socket := range sockets {
		text, err := commandAt(ctx, socket, method, args)
		if err == nil {
			return text, nil
		}
		errs = append(errs, fmt.Errorf("%s %v at %s: %w", method, args, socket, err))
	}
	return "", errors.Join(errs...)
}

func commandAt(ctx context.Context, socket, method string, args []string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // errors of the connection show when writing
	}
	request := map[string]any{"id": 0, "method": method, "params": args}
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return "", err
	}
	var answer struct {
		Result string
		Error  *string
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Error != nil {
		return "", errors.New(*answer.Error)
	}
	return answer.Result, nil
}
