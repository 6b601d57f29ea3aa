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

// answerTime is how long ovn-controller has for an answer.
const answerTime = 300 * time.Millisecond

// prober asks ovn-controller whether it works.
type prober struct {
	dir string
	// waiting are the connections on which an answer is due, by socket: one that hangs is asked
	// once, for its queue of connections is short.
	waiting map[string]net.Conn
}

func newProber(dir string) *prober { return &prober{dir, map[string]net.Conn{}} }

// look asks by the control sockets in the directory for the version, as ovs-appctl(8) does.
func (p *prober) look(ctx context.Context) pulse {
	sockets, err := filepath.Glob(filepath.Join(p.dir, "ovn-controller.*.ctl"))
	if err != nil {
		return absent
	}
	sum := absent
	for _, socket := range sockets {
		sum = max(sum, p.ask(ctx, socket))
	}
	return sum
}

func (p *prober) ask(ctx context.Context, socket string) pulse {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if conn := p.waiting[socket]; conn != nil {
		if got := p.listen(ctx, socket, conn); got >= silent {
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
	return p.listen(ctx, socket, conn)
}

// listen waits for the answer on a connection, and keeps it for later if there is none yet.
func (p *prober) listen(ctx context.Context, socket string, conn net.Conn) pulse {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline) // what is wrong with the connection is seen at reading
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

// command has the daemon whose control socket a pattern names run a command, and returns what that prints (ovs-appctl(8)).
// Sockets that crashed processes left behind don't answer.
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
		_ = conn.SetDeadline(deadline) // what is wrong with the connection is seen at writing
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
