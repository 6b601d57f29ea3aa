// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// A switch that waits for a CPU loses nothing, as the kernel's datapath would not.
func TestPacketsWaitForTheirSwitch(t *testing.T) {
	const packets = 1000
	l := upLab(t, Config{Name: labName("queue"), NoKube: true, Nodes: 1})
	n := l.Nodes[0]
	to := n.LAN[0].Addr()
	ping(t, l, routerNetns, to)
	arrived := func() (count int) {
		text, err := l.Exec(t.Context(), n.Name, "cat", "/sys/class/net/"+lanLink+"/statistics/rx_packets")
		if _, scanErr := fmt.Sscan(text, &count); err != nil || scanErr != nil {
			t.Fatal(text, err, scanErr)
		}
		return count
	}
	before := arrived()
	p, err := proc.Find(l.path(n.Name), vswitchdName)
	if err != nil {
		t.Fatal(err)
	}
	if err := widenQueues(p.Pid); errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() {
		out, err := l.Exec(t.Context(), routerNetns, "ping", "-q", fmt.Sprint("-c", packets), fmt.Sprint("-l", packets),
			"-W10", to.String())
		done <- fmt.Sprint(out, err)
	}()
	waiting := poll(t.Context(), func() error {
		if sent := arrived() - before; sent < packets {
			return fmt.Errorf("%d of %d packets have arrived", sent, packets)
		}
		return nil
	})
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if out := <-done; waiting != nil || !strings.Contains(out, fmt.Sprintf(" %d received", packets)) {
		t.Error(waiting, out)
	}
}
