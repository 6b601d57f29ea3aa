// SPDX-License-Identifier: Apache-2.0

// Package unixctl sends commands to the daemons of OVN and Open vSwitch through their control sockets, as ovs-appctl(8)
// does.
package unixctl

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

// probeTimeout is how long a daemon may take to answer a probe.
const probeTimeout = 300 * time.Millisecond

// ProbeResult is the result of one probe of a daemon. If there are several sockets, the greatest value counts: those
// left behind by crashed processes are irrelevant if another one answers.
type ProbeResult int

const (
	// Absent means that there is no socket, because the daemon ended or never ran.
	Absent ProbeResult = iota
	// Crashed means that a socket was left behind and no process listens on it.
	Crashed
	// Silent means that the daemon runs but does not answer in time.
	Silent
	// Answered means that the daemon works.
	Answered
)

// Prober probes one daemon. It must be used by one goroutine at a time.
type Prober struct {
	pattern string
	// timeout is probeTimeout, except in tests.
	timeout time.Duration
	// waiting are the connections with a pending request, by socket. A hung daemon is sent only one request, because
	// its queue of connections is short.
	waiting map[string]net.Conn
}

// NewProber returns a Prober of the daemon whose control socket matches a pattern (filepath.Match).
func NewProber(pattern string) *Prober {
	return &Prober{pattern: pattern, timeout: probeTimeout, waiting: map[string]net.Conn{}}
}

// Check requests the version of the daemon.
func (p *Prober) Check(ctx context.Context) ProbeResult {
	sockets, err := filepath.Glob(p.pattern)
	if err != nil {
		return Absent
	}
	sum := Absent
	for _, socket := range sockets {
		sum = max(sum, p.probe(ctx, socket))
	}
	return sum
}

func (p *Prober) probe(ctx context.Context, socket string) ProbeResult {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if conn := p.waiting[socket]; conn != nil {
		if got := p.awaitReply(ctx, socket, conn); got >= Silent {
			return got
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Crashed
	case errors.Is(err, os.ErrNotExist):
		return Absent
	case err != nil:
		return Silent
	}
	if _, err := conn.Write([]byte(`{"id":0,"method":"version","params":[]}`)); err != nil {
		conn.Close()
		return Crashed
	}
	return p.awaitReply(ctx, socket, conn)
}

// awaitReply waits for the answer on a connection. If there is none yet, it keeps the connection for later.
func (p *Prober) awaitReply(ctx context.Context, socket string, conn net.Conn) ProbeResult {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline) // errors of the connection show when reading
	}
	var answer struct{ Result any }
	err := json.NewDecoder(conn).Decode(&answer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.waiting[socket] = conn
		return Silent
	}
	conn.Close()
	delete(p.waiting, socket)
	if err != nil || answer.Result == nil {
		return Crashed
	}
	return Answered
}

// Command runs a command in the daemon whose control socket matches a pattern, and returns its output
// (ovs-appctl(8)). Sockets left behind by crashed processes don't answer.
func Command(ctx context.Context, pattern, method string, args ...string) (string, error) {
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
