// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// remote opens an additional socket to a database. cut closes the socket and all its connections.
func (o *ovn) remote(t *testing.T, db, name string) (address string, open, cut func()) {
	t.Helper()
	socket := filepath.Join(o.dir, name+".sock")
	appctl := func(command string) {
		t.Helper()
		run(t, "ovs-appctl", "-t", strings.TrimPrefix(o.endpoint(db).Address, "unix:")+".ctl", "ovsdb-server/"+command,
			"punix:"+socket)
	}
	open, cut = func() { t.Helper(); appctl("add-remote") }, func() { t.Helper(); appctl("remove-remote") }
	open()
	return "unix:" + socket, open, cut
}

// A leader that loses a database that others can still reach releases the lease. While disconnected it does not compete
// for the lease, even without competitors. After it reconnects, it competes again.
func leaderIsCutOffFromDatabase(t *testing.T, c *cluster) {
	for _, db := range []string{"nb", "sb"} {
		s := c.scene(t)
		address, open, cut := s.remote(t, db, "first")
		start := func() *command {
			return c.command(t, s.binary, "first", s.ovn, "--"+db+"-address="+address,
				"--leader-elect-database-timeout=5s")
		}
		first := start()
		s.leads(t, "first")
		eventually(t, "the first is ready", func() bool { return first.get("/readyz") != "" })
		second := c.command(t, s.binary, "second", s.ovn)
		eventually(t, "the second is ready", func() bool { return second.get("/readyz") != "" })

		cut()
		eventually(t, "the first is not ready", func() bool { return first.get("/readyz") == "" })
		if err := first.end(t); err == nil {
			t.Errorf("disconnected from %s, the leader ends without an error", db)
		}
		s.leads(t, "second")
		c.service(t, "web-0")
		c.addresses(t, "web-0")

		again := start()
		eventually(t, "it runs again", func() bool { return again.get("/healthz") != "" })
		second.signal(t, syscall.SIGTERM)
		if err := second.end(t); err != nil {
			t.Errorf("after the stop request: %v", err)
		}
		if got := again.get("/readyz"); got != "" {
			t.Errorf("disconnected, the first one reports ready: %q", got)
		}
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); { // ten retry periods
			if s.leader(t) == "first" {
				t.Fatalf("it has the lease and can't reach %s", db)
			}
		}
		open()
		s.leads(t, "first")
		again.signal(t, syscall.SIGTERM)
		if err := again.end(t); err != nil {
			t.Errorf("after the stop request: %v", err)
		}
		c.clear(t)
	}
}

// A loop really blocks: the reader of the log stops reading, and the pipe is full. The kubelet would detect that by
// /healthz and restart the process. The restarted process continues the work.
func stuckLeaderIsRestarted(t *testing.T, c *cluster) {
	s := c.scene(t)
	path := filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Two open file descriptions of one pipe: the process's blocks, ours does not.
	ours, err := syscall.Open(path, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(ours) })
	fd, err := syscall.Open(path, syscall.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fd), path)
	t.Cleanup(func() { _ = theirs.Close() })
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		const most = 1 << 17 // more than the pipe's capacity
		said := make([]byte, most)
		n, _ := syscall.Read(ours, said) // A log that can't be read adds nothing.
		t.Logf("output before it was stuck:\n%s\nthe Service: %+v", said[:max(n, 0)], c.get(t, "web-0").
			Status.Conditions)
	})

	args := []string{"--loglevel=3", "--healthz-stall-timeout=10s"}
	first := c.commandInto(t, theirs, s.binary, "first", s.ovn, args...)
	s.leads(t, "first")
	eventually(t, "ready and alive", func() bool { return first.get("/readyz") != "" && first.get("/healthz") != "" })
	// The informers log their start to the same pipe. If they blocked there, the watched loops would receive no events.
	c.endpoints(t, "web-1", podOf(1).String())
	c.service(t, "web-1")
	c.addresses(t, "web-1")
	eventually(t, "its rows", func() bool { return len(s.loadBalancers(t)) > 0 })
	before := len(s.loadBalancers(t))
	for chunk := make([]byte, 4096); len(chunk) > 0; {
		if _, err := syscall.Write(ours, chunk); errors.Is(err, syscall.EAGAIN) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	c.endpoints(t, "web-0", podOf(0).String())
	c.service(t, "web-0")
	eventually(t, "the liveness probe fails", func() bool {
		select {
		case <-first.ended:
			t.Fatal("it ended by itself")
		default:
		}
		return first.get("/healthz") == ""
	})
	// As the kubelet does after the grace period: a blocked process may ignore SIGTERM.
	first.signal(t, syscall.SIGKILL)
	_ = first.end(t)
	c.keep(t, s.binary, "first", s.ovn, args...)
	c.addresses(t, "web-0")
	eventually(t, "its rows", func() bool { return len(s.loadBalancers(t)) > before })
}
