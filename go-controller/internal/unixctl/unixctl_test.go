// SPDX-License-Identifier: Apache-2.0

package unixctl

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

func TestMain(m *testing.M) { os.Exit(ovnprefix.Main(m)) }

// The test probes a real OVS daemon, which answers, is stopped, and dies.
func TestHeartbeatOfRealDaemon(t *testing.T) {
	contract.Test(t, "ovsdb-server", "ovsdb-tool")
	dir := t.TempDir()
	daemons := NewProber(filepath.Join(dir, "ovn-northd.*.ctl"))
	if p := daemons.Check(t.Context()); p != Absent {
		t.Errorf("nothing there: %d", p)
	}
	daemon := exec.Command("ovsdb-server", "--remote=punix:"+filepath.Join(dir, "db.sock"),
		"--unixctl="+filepath.Join(dir, "ovn-northd.1.ctl"),
		"-vconsole:off", database(t, dir))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	awaitHeartbeat := func(want ProbeResult) {
		t.Helper()
		await.NoError(t, fmt.Sprintf("the heartbeat is %d", want), func(ctx context.Context) error {
			if got := daemons.Check(ctx); got != want {
				return fmt.Errorf("it is %d", got)
			}
			return nil
		})
	}
	awaitHeartbeat(Answered)
	if err := daemon.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitHeartbeat(Silent)
	daemons.timeout = time.Millisecond
	for range 15 { // More than a queue of connections holds.
		if p := daemons.Check(t.Context()); p != Silent {
			t.Errorf("stopped: heartbeat %d", p)
		}
	}
	if err := daemon.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	daemons.timeout = probeTimeout
	awaitHeartbeat(Answered)
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitHeartbeat(Crashed)
}

func database(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "conf.db")
	if out, err := exec.Command("ovsdb-tool", "create", file, ovnprefix.Schema("openvswitch/vswitch.ovsschema")).
		CombinedOutput(); err != nil {
		t.Fatalf("ovsdb-tool: %v: %s", err, out)
	}
	return file
}
