// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// A crash of Open vSwitch writes nothing to its output.
func TestEndedShowsHowOpenVSwitchCrashed(t *testing.T) {
	l := upLab(t, Config{Name: labName("crash"), NoKube: true, Nodes: 1})
	node := l.Nodes[0].Name
	if ended := l.Ended(node); ended != "" {
		t.Fatalf("before the crash: %s", ended)
	}
	p, err := proc.Find(l.path(node), vswitchdName)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var ended string
	for tick := time.Tick(10 * time.Millisecond); ; {
		ended = l.Ended(node)
		if strings.Contains(ended, "segmentation fault") && strings.Contains(ended, "SIGSEGV detected, backtrace:") {
			break
		}
		select {
		case <-tick:
		case <-ctx.Done():
			t.Fatalf("Ended = %q", ended)
		}
	}
	if err := l.Restore(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if ended := l.Ended(node); ended != "" {
		t.Errorf("after it was restored: %s", ended)
	}
}
