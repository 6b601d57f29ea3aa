// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

const labProgram = "test/lab/cmd/lab"

// ensureBinary builds the lab's command into the lab's directory if the caller did not specify one.
func (l *Lab) ensureBinary(ctx context.Context) (err error) {
	if l.state.Binary == "" {
		l.state.Binary, err = program.Path(ctx, labProgram, l.Dir)
	}
	return err
}

// inside returns a command line that runs in one of the lab's namespaces, given by its short name.
func (l *Lab) inside(short string, args ...string) []string {
	return slices.Concat([]string{"ip", "netns", "exec", l.Netns(short)}, args)
}

// Command returns a command that runs in one of the lab's namespaces when started.
func (l *Lab) Command(ctx context.Context, short string, args ...string) *exec.Cmd {
	args = l.inside(short, args...)
	return exec.CommandContext(ctx, args[0], args[1:]...)
}

// ToolEnv returns the environment in which the programs of Open vSwitch and OVN find the daemons and databases of a
// namespace: those of a node, or "cen" for the databases of central mode.
func (l *Lab) ToolEnv(short string) []string { return ovsEnv(l.path(short)) }

// Exec runs a command in one of the lab's namespaces and returns its output.
func (l *Lab) Exec(ctx context.Context, short string, args ...string) (string, error) {
	return run(ctx, l.inside(short, args...)...)
}

// Start runs a daemon in one of the lab's namespaces until it is killed or the lab is removed. Its output is in
// [proc.Process.Log]. Most programs belong in the namespace "cen", where the API server is reachable. NBSocket works in
// every namespace.
func (l *Lab) Start(ctx context.Context, short, name string, env []string, args ...string) (*proc.Process, error) {
	return proc.Start(ctx, proc.Spec{Name: name, Dir: l.path("started"), Netns: l.Netns(short), Args: args, Env: env,
		Nice: proc.Machine})
}

// Probe is a client that runs in a namespace of the lab.
type Probe struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	diag *bytes.Buffer
}

// confirmTime is how long a flow may take to be answered after a probe: six retransmissions (RFC 6298 section 5.5).
const confirmTime = 20 * time.Second

// StartProbe starts streams of requests from a namespace and returns when each stream has received a response. After
// [poll.Limit] without one it returns an error. Finish ends the probe.
func (l *Lab) StartProbe(ctx context.Context, short string, specs ...probe.Spec) (*Probe, error) {
	args := l.self("probe", "--json", "--duration", time.Hour.String(), "--confirm", confirmTime.String())
	for _, spec := range specs {
		args = append(args, spec.String())
	}
	p := &Probe{cmd: l.Command(ctx, short, args...), diag: &bytes.Buffer{}}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.Stderr = p.diag
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(stdout)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start probe: %w", err)
	}
	proc.SetNice(p.cmd.Process.Pid, proc.Foremost)
	if err := p.await(probe.AnsweredLine); err != nil {
		return nil, fmt.Errorf("probe from %s: %w", short, err)
	}
	return p, nil
}

// Complete returns when each flow and connection has received a response or has failed. After a minute it ends the
// probe and returns an error.
func (p *Probe) Complete() error { return p.await(probe.CompleteLine) }

// await reads a line. It ends the probe if another one comes or none in time.
func (p *Probe) await(want string) error {
	impatient := time.AfterFunc(poll.Limit, func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) })
	defer impatient.Stop()
	line, err := p.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		_ = p.cmd.Wait() // The output is more specific than the exit status.
		return fmt.Errorf("not %s within %s: %s%s", want, poll.Limit, line, p.diag)
	}
	return nil
}

// Finish ends the probe and returns its results since the start, one per stream, in order. It waits until each flow has
// been answered once more or is taken for dead ([probe.Flow]).
func (p *Probe) Finish() ([]probe.Result, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("end probe: %w", err)
	}
	text, readErr := io.ReadAll(p.out)
	if err := errors.Join(readErr, p.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("end probe: %w: %s", err, p.diag)
	}
	return probeResults(text)
}

// probeResults reads the results of a probe. Its lines that no caller has awaited precede them.
func probeResults(text []byte) ([]probe.Result, error) {
	for _, line := range []string{probe.AnsweredLine, probe.CompleteLine} {
		text = bytes.TrimPrefix(text, []byte(line+"\n"))
	}
	var results []probe.Result
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("results of probe: %w", err)
	}
	return results, nil
}

// Probe runs streams of requests from a namespace for a duration, whether or not they are answered.
func (l *Lab) Probe(ctx context.Context, short string, duration time.Duration, specs ...probe.Spec) ([]probe.Result,
	error) {
	args := l.self("probe", "--json", "--duration", duration.String())
	for _, spec := range specs {
		args = append(args, spec.String())
	}
	text, err := l.Exec(ctx, short, args...)
	if err != nil {
		return nil, fmt.Errorf("probe from %s: %w", short, err)
	}
	return probeResults([]byte(text))
}
