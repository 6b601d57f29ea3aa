// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// Process is the record of a daemon that runs or has exited, as stored in <dir>/<Name>.proc.
type Process struct {
	Name  string   `json:"name"`
	Netns string   `json:"netns,omitempty"`
	Args  []string `json:"args"`
	Pid   int      `json:"pid"`
	// StartTicks is the start time in clock ticks since boot (proc_pid_stat(5), field 22). Together with Pid it identifies
	// one process uniquely.
	StartTicks uint64 `json:"startTicks"`

	dir string
}

const recordSuffix = ".proc"

func recordPath(dir, name string) string { return filepath.Join(dir, name+recordSuffix) }
func logPath(dir, name string) string    { return filepath.Join(dir, name+".log") }

// Log returns the path of the file with the output of the process.
func (p *Process) Log() string { return logPath(p.dir, p.Name) }

// Alive reports whether the process still runs. A zombie does not run. As long as one of its threads runs, a process
// holds its locks and sockets, even if its first thread is a zombie.
func (p *Process) Alive() bool {
	stat, err := readStat(p.Pid)
	return err == nil && stat.startTicks == p.StartTicks && (stat.state != 'Z' && stat.state != 'X' || stat.threads > 1)
}

// Stopped reports whether the process was stopped by a signal, such as SIGSTOP, and has not been continued.
func (p *Process) Stopped() bool {
	stat, err := readStat(p.Pid)
	return err == nil && stat.startTicks == p.StartTicks && stat.state == 'T'
}

// CPU returns the CPU time that the process and those of its threads that have ended have used (proc_pid_stat(5), utime
// and stime). Its resolution is 10 ms.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := readStat(p.Pid)
	if err != nil {
		return 0, err
	}
	if stat.startTicks != p.StartTicks {
		return 0, fmt.Errorf("%s (pid %d): %w", p.Name, p.Pid, os.ErrProcessDone)
	}
	return stat.cpu, nil
}

// Signal sends sig to the process alone, not to its group. It returns nil if the process has exited.
func (p *Process) Signal(sig syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	return p.signal(p.Pid, sig)
}

// SignalGroup sends sig to the process and its child processes. It returns nil if the process has exited.
func (p *Process) SignalGroup(sig syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	return p.signal(-p.Pid, sig)
}

func (p *Process) signal(target int, sig syscall.Signal) error {
	if err := syscall.Kill(target, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s (pid %d) with %s: %w", p.Name, p.Pid, sig, err)
	}
	return nil
}

// Kill kills the process and its group by SIGKILL, waits until the process is gone, and removes its record. It returns
// nil if the process had exited before.
func (p *Process) Kill() error {
	return p.end(func() error { return nil })
}

// Terminate sends SIGTERM to the process. When it has exited, or when the context is done, Terminate kills it and its
// group as Kill does.
func (p *Process) Terminate(ctx context.Context) error {
	return p.end(func() error {
		if err := p.signal(p.Pid, syscall.SIGTERM); err != nil {
			return err
		}
		_ = p.Wait(ctx) // A process that still runs is killed next.
		return nil
	})
}

// end checks only once whether the pid still belongs to the process. The kernel does not reuse the pid while members of
// its group live.
func (p *Process) end(ask func() error) error {
	if p.Alive() {
		if err := errors.Join(ask(), p.signal(-p.Pid, syscall.SIGKILL)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), poll.Limit)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		return fmt.Errorf("kill %s: %w", p.Name, err)
	}
	return p.forget()
}

// Wait returns nil when the process has exited, regardless of which program started it, or an error when the context is
// done first.
func (p *Process) Wait(ctx context.Context) error {
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for p.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("pid %d (%s) still runs: %w", p.Pid, p.Name, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Load returns the processes recorded in dir and its subdirectories that still run, sorted by name. An absent dir has
// none.
func Load(dir string) ([]*Process, error) {
	all, err := records(dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p *Process) bool { return !p.Alive() }), nil
}

// Find returns the process with the name that is recorded in dir, running or not. It returns [fs.ErrNotExist] if there
// is no such record.
func Find(dir, name string) (*Process, error) { return loadOne(recordPath(dir, name)) }

// KillRecorded kills all processes recorded in dir and its subdirectories concurrently, and removes the records. If dir
// does not exist, it does nothing.
func KillRecorded(dir string) error {
	all, err := records(dir)
	errs := make([]error, len(all), len(all)+1)
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { errs[i] = p.Kill() })
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

func records(dir string) ([]*Process, error) {
	var all []*Process
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Another process is cleaning up concurrently.
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, recordSuffix) {
			return err
		}
		p, err := loadOne(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			all = append(all, p)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the process records in %s: %w", dir, err)
	}
	slices.SortFunc(all, func(a, b *Process) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func loadOne(path string) (*Process, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Process{dir: filepath.Dir(path)}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("process record %s: %w", path, err)
	}
	if p.Pid <= 1 { // A pid of 0 or 1 would signal the caller's own group, or all processes.
		return nil, fmt.Errorf("process record %s: pid %d: want more than 1", path, p.Pid)
	}
	return p, nil
}

// save writes the record atomically.
func (p *Process) save() error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	path := recordPath(p.dir, p.Name)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// forget removes the record, unless it belongs to a later process with the same name.
func (p *Process) forget() error {
	path := recordPath(p.dir, p.Name)
	if current, err := loadOne(path); err == nil && (current.Pid != p.Pid || current.StartTicks != p.StartTicks) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", p.Name, err)
	}
	return nil
}

type stat struct {
	state byte
	// threads includes the first thread until the whole process is gone.
	threads    int
	startTicks uint64
	cpu        time.Duration
}

// ticksPerSecond is the unit of times in proc_pid_stat(5), USER_HZ, which is 100 on all architectures of Go.
const ticksPerSecond = 100

// readStat reads proc_pid_stat(5). The command name, field 2, is in parentheses and may contain any character, so
// fields are counted from the last ')'.
func readStat(pid int) (stat, error) {
	path := filepath.Join("/proc", strconv.Itoa(pid), "stat")
	text, err := os.ReadFile(path)
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const state, user, system, count, start = 0, 14 - 3, 15 - 3, 20 - 3, 22 - 3 // The first field after the name is 3.
	if len(fields) <= start {
		return stat{}, fmt.Errorf("%s: %d fields, want more than %d", path, len(fields), start)
	}
	threads, err := strconv.Atoi(fields[count])
	if err != nil {
		return stat{}, fmt.Errorf("%s: threads: %w", path, err)
	}
	ticks, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("%s: start time: %w", path, err)
	}
	used := time.Duration(0)
	for _, field := range []int{user, system} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("%s: CPU time: %w", path, err)
		}
		used += time.Duration(n) * time.Second / ticksPerSecond
	}
	return stat{state: fields[state][0], threads: threads, startTicks: ticks, cpu: used}, nil
}
