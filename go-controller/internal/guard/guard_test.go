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

// A network is lost with the last of its links.
func TestLostNetworks(t *testing.T) {
	got := lost(map[string]ovn.Uplinks{
		"lost":     {Bridge: "br-a", Links: []ovn.Uplink{{Name: "eno1", Lost: true}, {Name: "eno2", Lost: true}}},
		"one-left": {Bridge: "br-b", Links: []ovn.Uplink{{Name: "eno3", Lost: true}, {Name: "eno4"}}},
		"inside":   {Bridge: "br-c"},
	})
	want := map[string]string{"lost": "no carrier on eno1, eno2, which connects bridge br-a to network lost"}
	if !maps.Equal(got, want) {
		t.Errorf("lost %v, want %v", got, want)
	}
}

// A fault counts at once, and until it has been gone for the time of recovery.
func TestFaultsAreGoneAfterAWhile(t *testing.T) {
	s, start, down := sights{}, time.Unix(1000, 0), map[string]string{"provider": "no carrier"}
	for _, step := range []struct {
		at   time.Duration
		seen map[string]string
		want int
	}{
		{0, nil, 0}, {1, down, 1}, {2, nil, 1}, {3, down, 1}, {5, nil, 1}, {6, nil, 1}, {7, nil, 0}, {8, nil, 0},
	} {
		if got := s.see(start.Add(step.at*time.Second), step.seen); len(got) != step.want {
			t.Errorf("after %d s: %v, want %d", step.at, got, step.want)
		}
	}
}

func TestVitals(t *testing.T) {
	const gone, hangs = "does not run", "has not answered"
	for name, c := range map[string]struct {
		pulses []pulse // one every 500 ms
		want   string
	}{
		"never seen":             {[]pulse{absent, absent, absent, absent}, ""},
		"well":                   {[]pulse{answered, answered}, ""},
		"just gone":              {[]pulse{answered, absent}, ""},
		"gone":                   {[]pulse{answered, absent, absent}, gone},
		"crashed before we came": {[]pulse{crashed, crashed, crashed}, gone},
		"back":                   {[]pulse{answered, absent, crashed, answered}, ""},
		"busy":                   {slices.Concat([]pulse{answered}, slices.Repeat([]pulse{silent}, 59)), ""},
		"hangs":                  {slices.Repeat([]pulse{silent}, 61), hangs},
		"ends after it hung":     {slices.Concat(slices.Repeat([]pulse{silent}, 61), []pulse{absent}), gone},
	} {
		var v vitals
		var got string
		for i, p := range c.pulses {
			got = v.feel(time.Unix(1000, 0).Add(time.Duration(i)*lookEvery), p)
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is asked is a real daemon of OVS' kind, which answers, is stopped, and dies.
func TestLookAtARealDaemon(t *testing.T) {
	dir := t.TempDir()
	daemons := newProber(dir)
	if p := daemons.look(t.Context()); p != absent {
		t.Errorf("nothing there: %d", p)
	}
	daemon := exec.Command("ovsdb-server", "--remote=punix:"+filepath.Join(dir, "db.sock"), "--unixctl="+filepath.Join(dir, "ovn-controller.1.ctl"),
		"-vconsole:off", database(t, dir))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	await := func(want pulse) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for got := daemons.look(t.Context()); got != want; got = daemons.look(t.Context()) {
			if time.Now().After(deadline) {
				t.Fatalf("pulse is still %d, want %d", got, want)
			}
		}
	}
	await(answered)
	if err := daemon.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(silent)
	for range 15 { // More than a queue of connections holds.
		if p := daemons.look(t.Context()); p != silent {
			t.Errorf("stopped: pulse %d", p)
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
	if out, err := exec.Command("ovsdb-tool", "create", file, ovnprefix.Schema("openvswitch/vswitch.ovsschema")).CombinedOutput(); err != nil {
		t.Fatalf("ovsdb-tool: %v: %s", err, out)
	}
	return file
}
