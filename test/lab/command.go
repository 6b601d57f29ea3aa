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
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// ProgramsVariable names a directory with the programs of `make build`, so that tests which run as root need not build.
const ProgramsVariable = "SLB_BIN"

// Program returns the path of a command of this module, as "test/lab/cmd/lab" or "go-controller/cmd/ovnkube-slb": the one in the
// directory that [ProgramsVariable] names, or else one that it builds into dir, for which it must be called inside the module.
func Program(ctx context.Context, command, dir string) (string, error) {
	if built := os.Getenv(ProgramsVariable); built != "" {
		dir = built
	}
	path, err := filepath.Abs(filepath.Join(dir, filepath.Base(command)))
	if err != nil || dir == os.Getenv(ProgramsVariable) {
		return path, err
	}
	if _, err := run(ctx, "go", "build", "-ldflags=-s -w", "-o", path, modulePath+command); err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	return path, nil
}

const (
	modulePath = "github.com/ovnkube-slb/ovnkube-slb/"
	labProgram = "test/lab/cmd/lab"
)

// ensureBinary builds the lab's command into the lab's directory, if the caller named none.
func (l *Lab) ensureBinary(ctx context.Context) (err error) {
	if l.state.Binary == "" {
		l.state.Binary, err = Program(ctx, labProgram, l.Dir)
	}
	return err
}

// inside is a command line that runs in one of the lab's namespaces, given by its short name.
func (l *Lab) inside(short string, args ...string) []string {
	return slices.Concat([]string{"ip", "netns", "exec", l.Netns(short)}, args)
}

// Command is a command that will run in one of the lab's namespaces.
func (l *Lab) Command(ctx context.Context, short string, args ...string) *exec.Cmd {
	args = l.inside(short, args...)
	return exec.CommandContext(ctx, args[0], args[1:]...)
}

// Exec runs a command in one of the lab's namespaces and returns what it prints.
func (l *Lab) Exec(ctx context.Context, short string, args ...string) (string, error) {
	return run(ctx, l.inside(short, args...)...)
}

// Start runs a daemon in one of the lab's namespaces, until it is killed or the lab goes; its output is in [proc.Process.Log].
// Most programs belong into the namespace "cen": the API server answers there, and NBSocket everywhere.
func (l *Lab) Start(ctx context.Context, short, name string, env []string, args ...string) (*proc.Process, error) {
	return proc.Start(ctx, proc.Spec{Name: name, Dir: l.path("started"), Netns: l.Netns(short), Args: args, Env: env})
}

// Probe is a client that runs in a namespace of the lab.
type Probe struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	diag *bytes.Buffer
}

// StartProbe runs streams of questions from a namespace, and returns when each has had an answer (or after ten seconds, with an error).
// Finish ends it.
func (l *Lab) StartProbe(ctx context.Context, short string, specs ...probe.Spec) (*Probe, error) {
	args := l.self("probe", "--json", "--duration", time.Hour.String())
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
	const patience = 10 * time.Second
	impatient := time.AfterFunc(patience, func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) })
	defer impatient.Stop()
	line, err := p.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != probe.AnsweredLine {
		_ = p.cmd.Wait() // Its output says more than its exit.
		return nil, fmt.Errorf("probe from %s was not answered within %s: %s%s", short, patience, line, p.diag)
	}
	return p, nil
}

// Finish ends the probe and returns what it saw since its start, one result a stream, in order.
func (p *Probe) Finish() ([]probe.Result, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("end probe: %w", err)
	}
	text, readErr := io.ReadAll(p.out)
	if err := errors.Join(readErr, p.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("end probe: %w: %s", err, p.diag)
	}
	var results []probe.Result
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("results of probe: %w", err)
	}
	return results, nil
}

// Probe runs streams of questions from a namespace for a time.
func (l *Lab) Probe(ctx context.Context, short string, duration time.Duration, specs ...probe.Spec) ([]probe.Result, error) {
	p, err := l.StartProbe(ctx, short, specs...)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
	return p.Finish()
}
