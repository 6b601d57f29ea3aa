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

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

const (
	// endPoll is the interval at which Wait checks whether a process has exited.
	endPoll = 2 * time.Millisecond
	// logTail is the size of the end of a log that an error includes, in bytes.
	logTail = 2048
)

// Foremost is the nice value of processes on which others depend and that depend on none of them: forwarding, and
// probes that measure it. The lab forwards in user space. On a busy machine, BFD would otherwise consider a switch
// dead.
const Foremost = -20

// Machine is the nice value of all else that runs on machines of its own in a cluster: control plane, controller,
// daemons of nodes. They yield to forwarding, and take precedence over a build beside them. All of them have the same:
// an API server that waits for the processes that compute flows does not renew leases.
const Machine = Foremost / 2

// restarting runs a program again when it has ended with status 1, until it is terminated.
const restarting = `trap 'told=yes; kill -TERM $child 2>/dev/null' TERM
while :; do
	"$@" & child=$!
	[ -z "$told" ] || kill -TERM $child
	wait $child; status=$?
	while kill -0 $child 2>/dev/null; do wait $child; status=$?; done # a signal ends wait
	[ -z "$told" ] && [ $status -eq 1 ] || exit $status
	echo "exit status 1, starting it again"
done`

// Spec describes a process to run.
type Spec struct {
	// Name is unique within Dir and determines the files <Name>.proc (the record) and <Name>.log (standard output and
	// error, appended). It consists of lower case letters, digits, '.', '_' and '-'.
	Name string
	// Dir contains the record and the log. It is created if absent, and is the working directory of the process.
	Dir string
	// Netns is the network namespace in which the process runs, by its name in ip-netns(8). Empty means that of the
	// caller.
	Netns string
	// Args is the program, looked up in PATH, and its arguments.
	Args []string
	// Env is added to the caller's environment, as NAME=value.
	Env []string
	// Nice is its nice value, -20 to 19 (nice(2)). Processes that simulate hardware or other machines have lower values
	// than other processes.
	Nice int
	// Restart runs the program again when it has ended with status 1, as a kubelet does: a controller that loses its
	// lease ends that way. A panic has status 2. Terminate passes SIGTERM on to the program.
	Restart bool
	// Ready is called until it returns nil (package poll). If Ready is nil, the process is ready when started.
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

// command returns the command to execute. ip(8) replaces itself with the program, so the pid and the process group are
// those of the program.
func (s Spec) command() *exec.Cmd {
	args := s.Args
	if s.Restart {
		args = slices.Concat([]string{"sh", "-c", restarting, "sh"}, args)
	}
	if s.Netns != "" {
		args = slices.Concat([]string{"ip", "netns", "exec", s.Netns}, args)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// Start runs spec and returns when it is ready. The context bounds the wait for readiness (Limit if it has no
// deadline), not the lifetime of the process. A process that exits or is not ready in time is killed, and the error
// includes the end of its log. A live process with the same name in the same directory is an error.
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

// launch starts and records the process. A goroutine reaps it, so that it does not become a zombie while this program
// runs, and adds how it ended to its log: a daemon that crashes may not write anything itself.
func launch(spec Spec) (*Process, error) {
	log, err := os.OpenFile(logPath(spec.Dir, spec.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := spec.command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	SetNice(cmd.Process.Pid, spec.Nice)
	p := &Process{Name: spec.Name, Netns: spec.Netns, Args: spec.Args, Pid: cmd.Process.Pid, dir: spec.Dir}
	stat, err := readStat(p.Pid)
	if err == nil {
		p.StartTicks = stat.startTicks
		err = p.save()
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), log.Close())
	}
	go func() {
		defer log.Close()
		_ = cmd.Wait() // The state has the error as well. Alive reports that the process has exited.
		fmt.Fprintf(log, "%s (pid %d): %s\n", p.Name, p.Pid, cmd.ProcessState)
	}()
	return p, nil
}

// SetNice sets the nice value of a process that has just started and leads a session, and that of its session
// (sched(7), autogroup). Errors, such as missing permission, are ignored.
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
		ctx, cancel = context.WithTimeout(ctx, poll.Limit)
		defer cancel()
	}
	var ended error
	err := poll.Until(ctx, func(ctx context.Context) error {
		last := ready(ctx)
		if last != nil && !p.Alive() {
			ended = fmt.Errorf("ended before it was ready: %w", last)
			return nil
		}
		return last
	})
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	return ended
}

// tail returns the end of the log, indented, for error messages.
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
