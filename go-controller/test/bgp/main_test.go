// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Of the environment: inside says that the process is the one in the node's namespace, and where its files are; sessions
// makes it a speaker alone.
const (
	inside   = "SLB_TEST_BGP_DIR"
	sessions = "SLB_TEST_BGP_SESSIONS"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(sessions) != "":
		os.Exit(speakAlone())
	case os.Getenv(inside) != "":
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		// Tests wait more than they work.
		if !given {
			_ = flag.Set("test.parallel", "8") // The flag exists.
		}
		os.Exit(m.Run())
	default:
		code, err := nest()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(max(code, boolToInt(err != nil)))
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nest runs the tests in a namespace and removes what they leave.
func nest() (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("the tests of BGP make network namespaces: run them as root")
	}
	// Below a directory of the tests' own, the user frr could not reach its files.
	dir, err := os.MkdirTemp("", "slb-bgp-")
	if err != nil {
		return 1, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // The tests get it too, and end.
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Run(); err != nil {
		code = max(1, cmd.ProcessState.ExitCode())
	}
	return code, errors.Join(proc.KillRecorded(dir), removeNamespaces(filepath.Base(dir)+"-"), os.RemoveAll(dir))
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
