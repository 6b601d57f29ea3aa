// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

func TestMain(m *testing.M) { os.Exit(ovnprefix.Main(m)) }

// A network is lost when its last link is lost.
func TestLostNetworks(t *testing.T) {
	got := uplinkFaults(map[string]ovn.Uplinks{
		"lost":     {Bridge: "br-a", Links: []ovn.Uplink{{Name: "eno1", NoCarrier: true}, {Name: "eno2", NoCarrier: true}}},
		"one-left": {Bridge: "br-b", Links: []ovn.Uplink{{Name: "eno3", NoCarrier: true}, {Name: "eno4"}}},
		"inside":   {Bridge: "br-c"},
	})
	want := map[string]string{"lost": "no carrier on eno1, eno2, which connects bridge br-a to network lost"}
	if !maps.Equal(got, want) {
		t.Errorf("lost %v, want %v", got, want)
	}
}

// A fault takes effect at once and lasts until it has been absent for the recovery time.
func TestFaultsClearAfterStablePeriod(t *testing.T) {
	s, start, down := faultHistory{}, time.Unix(1000, 0), map[string]string{"provider": "no carrier"}
	for _, step := range []struct {
		at   time.Duration
		seen map[string]string
		want int
	}{
		{0, nil, 0}, {1, down, 1}, {2, nil, 1}, {3, down, 1}, {5, nil, 1}, {6, nil, 1}, {7, nil, 0}, {8, nil, 0},
	} {
		if got := s.observe(start.Add(step.at*time.Second), step.seen); len(got) != step.want {
			t.Errorf("after %d s: %v, want %d", step.at, got, step.want)
		}
	}
}

func TestHealthTracker(t *testing.T) {
	const gone, hangs = "is not running", "has not answered"
	for name, c := range map[string]struct {
		pulses []heartbeat // one per 500 ms
		want   string
	}{
		"never seen":             {[]heartbeat{absent, absent, absent, absent}, ""},
		"well":                   {[]heartbeat{answered, answered}, ""},
		"just gone":              {[]heartbeat{answered, absent}, ""},
		"gone":                   {[]heartbeat{answered, absent, absent}, gone},
		"crashed before we came": {[]heartbeat{crashed, crashed, crashed}, gone},
		"back":                   {[]heartbeat{answered, absent, crashed, answered}, ""},
		"busy":                   {slices.Concat([]heartbeat{answered}, slices.Repeat([]heartbeat{silent}, 59)), ""},
		"hangs":                  {slices.Repeat([]heartbeat{silent}, 61), hangs},
		"ends after it hung":     {slices.Concat(slices.Repeat([]heartbeat{silent}, 61), []heartbeat{absent}), gone},
	} {
		var v healthTracker
		var got string
		for i, p := range c.pulses {
			got = v.observe(time.Unix(1000, 0).Add(time.Duration(i)*checkInterval), p)
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The test probes a real OVS daemon, which answers, is stopped, and dies.
func TestHeartbeatOfRealDaemon(t *testing.T) {
	dir := t.TempDir()
	daemons := newProber(dir)
	if p := daemons.check(t.Context()); p != absent {
		t.Errorf("nothing there: %d", p)
	}
	daemon := exec.Command("ovsdb-server", "--remote=punix:"+filepath.Join(dir, "db.sock"),
		"--unixctl="+filepath.Join(dir, "ovn-controller.1.ctl"),
		"-vconsole:off", database(t, dir))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	await := func(want heartbeat) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for got := daemons.check(t.Context()); got != want; got = daemons.check(t.Context()) {
			if time.Now().After(deadline) {
				t.Fatalf("heartbeat is still %d, want %d", got, want)
			}
		}
	}
	await(answered)
	if err := daemon.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(silent)
	for range 15 { // More than a queue of connections holds.
		if p := daemons.check(t.Context()); p != silent {
			t.Errorf("stopped: heartbeat %d", p)
		}
	}
	if err := daemon.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(answered)
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(crashed)
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
