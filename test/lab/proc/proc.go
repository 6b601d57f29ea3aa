// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// readyPoll is how often Spec.Ready is asked: often, because the lab starts dozens of daemons one after another.
	readyPoll = 10 * time.Millisecond
	// readyDefault bounds the wait for Spec.Ready when the caller's context has no deadline.
	readyDefault = time.Minute
	// endPoll is how often a process that must end is looked at.
	endPoll = 2 * time.Millisecond
	// killDefault bounds the wait for a process after SIGKILL; only one stuck in the kernel takes longer.
	killDefault = 10 * time.Second
	// logTail is how much of a log an error quotes, in bytes.
	logTail = 2048
)

// Foremost is the nice value of what others wait for and what waits for none of them: forwarding and those who measure it. The lab
// forwards in user space; on a machine that is busy with other things a switch would else seem dead to BFD.
const Foremost = -20

// Spec says what to run and where its traces go.
type Spec struct {
	// Name is unique within Dir and names the files <Name>.proc (the record) and <Name>.log (standard output and error, appended).
	// Lower case letters, digits, '.', '_' and '-'.
	Name string
	// Dir holds record and log; it is created if absent, and is the process's working directory.
	Dir string
	// Netns is the network namespace, by its name in ip-netns(8), to run in. Empty: the caller's.
	Netns string
	// Args is the program, looked up in PATH, and its arguments.
	Args []string
	// Env is added to the caller's environment, as NAME=value.
	Env []string
	// Nice is its nice value, -20 to 19 (nice(2)). What stands for hardware or for another machine has less than what runs beside it.
	Nice int
	// Ready is asked every 10 ms until it returns nil. Nil: ready once started.
	Ready func(ctx context.Context) error
}

func (s Spec) validate() error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`).MatchString(s.Name) {
		return fmt.Errorf("process name %q: want lower case letters, digits, '.', '_' and '-'", s.Name)
	}
	if s.Dir == "" || len(s.Args) == 0 {
		return fmt.Errorf("process %s: Dir %q and Args %q must both be given", s.Name, s.Dir, s.Args)
	}
	return nil
}

// command is what is executed: ip(8) replaces itself by the program, so the pid and the process group are the program's own.
func (s Spec) command() *exec.Cmd {
	args := s.Args
	if s.Netns != "" {
		args = slices.Concat([]string{"ip", "netns", "exec", s.Netns}, s.Args)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// Start runs spec and returns when it is ready. The context bounds the wait for readiness (a minute if it has no deadline), not the
// life of the process. A process that ends or is not ready in time is ended, and the error quotes the end of its log.
// A live process with the same name in the same directory is an error.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: directory %q: %w", spec.Name, spec.Dir, err)
	}
	spec.Dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if old, err := loadOne(recordPath(dir, spec.Name)); err == nil && old.Alive() {
		return nil, fmt.Errorf("start %s: already running as pid %d in %s", spec.Name, old.Pid, dir)
	}
	p, err := launch(spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if err := p.awaitReady(ctx, spec.Ready); err != nil {
		tail := p.tail()
		return nil, errors.Join(fmt.Errorf("start %s: %w\n%s", spec.Name, err, tail), p.Kill())
	}
	return p, nil
}

// launch forks, records, and keeps a goroutine that reaps the process, so that it is no zombie while this program lives.
func launch(spec Spec) (*Process, error) {
	log, err := os.OpenFile(logPath(spec.Dir, spec.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := spec.command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	SetNice(cmd.Process.Pid, spec.Nice)
	p := &Process{Name: spec.Name, Netns: spec.Netns, Args: spec.Args, Pid: cmd.Process.Pid, dir: spec.Dir}
	stat, err := readStat(p.Pid)
	if err == nil {
		p.StartTicks = stat.startTicks
		err = p.save()
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	go func() { _ = cmd.Wait() }() // The exit status is not needed; Alive reports that it ended.
	return p, nil
}

// SetNice sets the nice value of a process that has just started and leads a session, and of the session among others (sched(7),
// autogroup). Who may not do so gets what others get.
func SetNice(pid, nice int) {
	if nice == 0 {
		return
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, nice)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
}

func (p *Process) awaitReady(ctx context.Context, ready func(context.Context) error) error {
	if ready == nil {
		return nil
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readyDefault)
		defer cancel()
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		if !p.Alive() {
			return fmt.Errorf("ended before it was ready: %w", last)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (last answer: %w)", ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// tail is the end of the log, indented, for errors.
func (p *Process) tail() string {
	text, err := os.ReadFile(p.Log())
	if err != nil {
		return err.Error()
	}
	if cut := len(text) - logTail; cut > 0 {
		text = text[cut:]
	}
	return "\t" + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n\t")
}
