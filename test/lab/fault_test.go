// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// A crash of Open vSwitch writes nothing to its output.
func TestEndedShowsHowOpenVSwitchCrashed(t *testing.T) {
	l := upLab(t, Config{Name: labName("crash"), NoKube: true, Nodes: 1})
	node := l.Nodes[0].Name
	if ended := l.Ended(node); ended != "" {
		t.Fatalf("before the crash: %s", ended)
	}
	program, err := exec.LookPath(vswitchdName)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"segmentation fault"}
	if bytes.Contains(text, []byte("backtrace_symbols_fd")) { // Open vSwitch 3.1 of Debian 12 writes no backtrace.
		wants = append(wants, "SIGSEGV detected, backtrace:")
	}
	p, err := proc.Find(l.path(node), vswitchdName)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	await.NoError(t, "the crash is in the log", func(context.Context) error {
		ended := l.Ended(node)
		if slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(ended, want) }) {
			return fmt.Errorf("Ended = %q, want %q in it", ended, wants)
		}
		return nil
	})
	if err := l.Restore(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if ended := l.Ended(node); ended != "" {
		t.Errorf("after it was restored: %s", ended)
	}
}
