// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

// roleVariable makes a process a part of the measurement. Its value is a role as JSON.
const roleVariable = "SLB_BENCH_BGP_ROLE"

// role is the role of a process; exactly one field is set. The process ends when its standard input does.
type role struct {
	Speaker *speaking
	// Responder is the name of a responder on echoPort.
	Responder string
	// Probe runs a client that writes probe.AnsweredLine, and at the end its result as a line of JSON.
	Probe *probe.Spec
}

func play(ctx context.Context, config string, in io.Reader, out io.Writer) error {
	var r role
	if err := json.Unmarshal([]byte(config), &r); err != nil {
		return err
	}
	if r.Speaker != nil {
		return r.Speaker.run(ctx, in, out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in) // an error ends it, too
	}()
	if r.Probe == nil {
		return responder.Run(ctx, responder.Options{Name: r.Responder, UDP: []uint16{echoPort},
			Listening: func(_, _ []uint16) error {
				_, err := fmt.Fprintln(out, r.Responder)
				return err
			}})
	}
	answered := func() { fmt.Fprintln(out, probe.AnsweredLine) } //nolint:errcheck // the reader's end is ours
	results, err := probe.Run(ctx, []probe.Spec{*r.Probe}, probe.Options{Answered: answered})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(results[0])
}

// collect is the GOGC of the speaker, the same as ovnkube-slb uses: a burst of routes leaves as much garbage as
// routes.
const collect = 50

// process is a process with a role.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(ctx context.Context, netns string, r role) (*process, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", netns, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text), fmt.Sprint("GOGC=", collect))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, in, bufio.NewScanner(out)}, nil
}

// says waits until the process writes a line. A speaker writes the number of Established sessions.
func (p *process) says(line string) error {
	for p.out.Scan() {
		if p.out.Text() == line {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("a process of the benchmark ended before it said %q", line), p.out.Err())
}

func (p *process) end() error {
	err := p.in.Close()
	for p.out.Scan() { // until the process has ended
		continue
	}
	return errors.Join(err, p.cmd.Wait())
}

// memory returns the current and the maximum resident memory of the process, in MB.
func (p *process) memory() (now, most float64, err error) { return memory(p.cmd.Process.Pid) }

func memory(pid int) (now, most float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var kb float64
		if _, err := fmt.Sscan(value, &kb); err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			now = kb / 1024
		case "VmHWM":
			most = kb / 1024
		}
	}
	return now, most, nil
}
