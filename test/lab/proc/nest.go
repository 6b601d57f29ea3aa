// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Nest runs work in a new network namespace and returns its exit status. It runs this program again with the
// environment variable inside set. Afterwards it removes what is left: recorded processes, the network namespaces named
// after its directory, and the directory. Errors are printed to standard error. Nest requires root. The program runs
// with a higher priority than other processes because tests of timers in the range of milliseconds fail otherwise.
func Nest(inside string, work func(dir string) int) int {
	if dir := os.Getenv(inside); dir != "" {
		return work(dir)
	}
	code, err := nest(inside)
	if err != nil {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // there is no other way to report it
		return max(code, 1)
	}
	return code
}

func nest(inside string) (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("network namespaces are made: run it as root")
	}
	// In a private directory of the tests, daemons that do not run as root could not access their files.
	dir, err := os.MkdirTemp("", "slb-")
	if err != nil {
		return 1, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command("nice", slices.Concat([]string{"-n", strconv.Itoa(Machine), self}, os.Args[1:])...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setsid: true}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	SetNice(cmd.Process.Pid, Machine)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range told {
			_ = cmd.Process.Signal(s) // The process may have exited.
		}
	}()
	if err := cmd.Wait(); err != nil {
		code = max(1, cmd.ProcessState.ExitCode())
	}
	return code, errors.Join(KillRecorded(dir), removeNamespaces(filepath.Base(dir)+"-"), os.RemoveAll(dir))
}

func removeNamespaces(prefix string) error {
	entries, err := os.ReadDir("/run/netns")
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			errs = append(errs, exec.Command("ip", "netns", "del", e.Name()).Run())
		}
	}
	return errors.Join(append(errs, err)...)
}
