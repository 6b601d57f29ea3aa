// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// A switch that waits for a CPU has room for the packets that arrive meanwhile.
func TestPacketsWaitForTheirSwitch(t *testing.T) {
	l := upLab(t, Config{Name: labName("queue"), NoKube: true, Nodes: 1})
	p, err := proc.Find(l.path(l.Nodes[0].Name), vswitchdName)
	if err != nil {
		t.Fatal(err)
	}
	queues := 0
	if err := eachQueue(p.Pid, func(socket int) error {
		size, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUF)
		if queues++; size < queueSize {
			t.Errorf("a queue has %d bytes (%v), want %d", size, err, queueSize)
		}
		return err
	}); errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if queues == 0 {
		t.Error("the switch has no queue")
	}
}
