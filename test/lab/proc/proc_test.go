// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

func start(t *testing.T, spec Spec) *Process {
	t.Helper()
	p, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// fileReady returns a Ready function that succeeds when the process has written the file.
func fileReady(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

func TestStartRecordsUntilKilled(t *testing.T) {
	dir := t.TempDir()
	up := filepath.Join(dir, "up")
	p := start(t, Spec{
		Name: "web", Dir: dir, Env: []string{"WHO=me"}, Ready: fileReady(up),
		Args: []string{"sh", "-c", `echo "I am $WHO"; touch up; exec sleep 60`},
	})
	found, err := Load(filepath.Dir(dir))
	if err != nil || len(found) != 1 || found[0].Pid != p.Pid || !found[0].Alive() {
		t.Fatalf("Load = %v, %v; want the one process, pid %d", found, err, p.Pid)
	}
	if log, err := os.ReadFile(p.Log()); err != nil || string(log) != "I am me\n" {
		t.Errorf("log = %q, %v", log, err)
	}
	if _, err := Start(t.Context(), Spec{Name: "web", Dir: dir, Args: []string{"sleep", "60"}}); err == nil {
		t.Error("a second process with the same name was started")
	}
	if err := KillRecorded(dir); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("still alive after KillRecorded")
	}
	if _, err := Find(dir, "web"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record stayed: %v", err)
	}
}

// A process and its children have the nice value. Where the kernel groups sessions, the session has it as well.
func TestNiceAppliesToProcessAndSession(t *testing.T) {
	dir := t.TempDir()
	p := start(t, Spec{
		Name: "switch", Dir: dir, Nice: -5, Ready: fileReady(filepath.Join(dir, "up")),
		Args: []string{"sh", "-c", `until [ "$(nice)" = -5 ]; do :; done; touch up; exec sleep 60`},
	})
	group, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", p.Pid))
	if err == nil && !strings.HasSuffix(strings.TrimSpace(string(group)), " nice -5") {
		t.Errorf("the session is %q", group)
	}
}

func TestCPUGrowsWhileTheProcessWorks(t *testing.T) {
	p := start(t, Spec{Name: "busy", Dir: t.TempDir(), Args: []string{"sh", "-c", "while :; do :; done"}})
	await.True(t, "CPU time is counted", func() bool {
		used, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		return used > 0
	})
	other := *p
	other.StartTicks++
	if used, err := other.CPU(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("another process with the pid: %s, %v", used, err)
	}
}

func TestKillAndTerminateEndTheGroup(t *testing.T) {
	for name, end := range map[string]func(*Process) error{
		"kill":      (*Process).Kill,
		"terminate": func(p *Process) error { return p.Terminate(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, Spec{
				Name: "parent", Dir: dir, Ready: fileReady(filepath.Join(dir, "up")),
				Args: []string{"sh", "-c", `sleep 60 & echo $! >child; mv child up; trap "exit 0" TERM; wait`},
			})
			text, err := os.ReadFile(filepath.Join(dir, "up"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			stat, err := readStat(pid)
			if err != nil {
				t.Fatal(err)
			}
			child := &Process{Name: "child", Pid: pid, StartTicks: stat.startTicks}
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			if err := child.Wait(await.Context(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTerminateKillsWhatIgnoresIt(t *testing.T) {
	dir := t.TempDir()
	p := start(t, Spec{
		Name: "deaf", Dir: dir, Ready: fileReady(filepath.Join(dir, "up")),
		Args: []string{"sh", "-c", `trap "" TERM; touch up; while :; do sleep 1; done`},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Terminate(ctx); err != nil || p.Alive() {
		t.Errorf("Terminate = %v, alive = %v", err, p.Alive())
	}
}

const endsFirstThread = "SLB_TEST_ENDS_FIRST_THREAD"

// TestMain also runs as a process whose first thread has exited while the other threads keep its resources, as happens
// while SIGKILL ends a process.
func TestMain(m *testing.M) {
	up := os.Getenv(endsFirstThread)
	if up == "" {
		os.Exit(m.Run())
	}
	if syscall.Gettid() != os.Getpid() {
		panic("this is not the first thread")
	}
	runtime.LockOSThread()
	go func() {
		if err := os.WriteFile(up, nil, 0o600); err != nil {
			panic(err)
		}
		select {}
	}()
	_, _, err := syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // exits only this thread (exit(2))
	panic(err)
}

func TestProcessIsAliveUntilItsLastThreadHasEnded(t *testing.T) {
	dir := t.TempDir()
	up := filepath.Join(dir, "up")
	p := start(t, Spec{
		Name: "threads", Dir: dir, Args: []string{os.Args[0]}, Env: []string{endsFirstThread + "=" + up},
		Ready: fileReady(up),
	})
	for {
		stat, err := readStat(p.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if stat.state == 'Z' {
			break
		}
	}
	if !p.Alive() {
		t.Error("the process counts as ended, and its other threads live")
	}
	if err := p.Kill(); err != nil || p.Alive() {
		t.Errorf("Kill = %v, alive = %v", err, p.Alive())
	}
}

func TestReusedPIDIsNotSignalled(t *testing.T) {
	bystander := start(t, Spec{Name: "bystander", Dir: t.TempDir(), Args: []string{"sleep", "60"}})
	dir := t.TempDir()
	stale := &Process{Name: "gone", Pid: bystander.Pid, StartTicks: bystander.StartTicks - 1, dir: dir}
	if err := stale.save(); err != nil {
		t.Fatal(err)
	}
	if err := KillRecorded(dir); err != nil {
		t.Fatal(err)
	}
	if !bystander.Alive() {
		t.Error("killed a process that only has the pid of the recorded one")
	}
	if _, err := Find(dir, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stale record stayed: %v", err)
	}
}

func TestStartFailureQuotesTheLog(t *testing.T) {
	never := func(context.Context) error { return errors.New("no answer") }
	_, err := Start(t.Context(), Spec{Name: "bad", Dir: t.TempDir(), Args: []string{"sh", "-c",
		"echo the reason >&2; exit 1"}, Ready: never})
	if err == nil || !strings.Contains(err.Error(), "the reason") || !strings.Contains(err.Error(),
		"ended before it was ready") {
		t.Errorf("error = %v", err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = Start(ctx, Spec{Name: "slow", Dir: dir, Args: []string{"sleep", "60"}, Ready: never}); err == nil {
		t.Error("a process that was never ready counts as started")
	}
	if left, err := Load(dir); err != nil || len(left) != 0 {
		t.Errorf("left running: %v, %v", left, err)
	}
}

// A daemon that crashes may write nothing itself.
func TestLogSaysHowTheProcessEnded(t *testing.T) {
	for command, want := range map[string]string{
		"kill -SEGV $$": "signal: segmentation fault", "exit 3": "exit status 3",
	} {
		p := start(t, Spec{Name: "crash", Dir: t.TempDir(), Args: []string{"sh", "-c", command}})
		await.NoError(t, command+" is in the log", func(context.Context) error {
			log, err := os.ReadFile(p.Log())
			if err == nil && string(log) != fmt.Sprintf("crash (pid %d): %s\n", p.Pid, want) {
				err = fmt.Errorf("log = %q, want %q in it", log, want)
			}
			return err
		})
	}
}

func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name, program, log string
	}{
		{"with status 1 again until another", "n=$(cat lives || echo 0); echo $((n+1)) >lives; echo life $n; " +
			"[ $n -lt 2 ] || exit 2; exit 1", "life 0\n" + again + "life 1\n" + again + "life 2\n"},
		{"told to end with status 1 not again", "trap 'echo told; exit 1' TERM; touch up; while :; do sleep 0.01; done",
			"told\n"},
		{"told to end at once", "touch up; exec sleep 60", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "lives"), []byte("0"), 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t, Spec{Name: "web", Dir: dir, Restart: true, Args: []string{"sh", "-c", c.program}})
			await.True(t, "the program is up, or has ended", func() bool {
				_, err := os.Stat(filepath.Join(dir, "up"))
				return err == nil || !p.Alive()
			})
			if err := p.Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
			log, err := os.ReadFile(p.Log())
			if err != nil || !strings.HasPrefix(string(log), c.log) ||
				strings.Count(string(log), again) != strings.Count(c.log, again) {
				t.Errorf("log = %q, %v, want %q", log, err, c.log)
			}
		})
	}
}

const again = "exit status 1, starting it again\n"
