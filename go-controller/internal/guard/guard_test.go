// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A network is lost when its last link is lost, and when no port or no bridge is left.
func TestLostNetworks(t *testing.T) {
	got := uplinkFaults(map[string]ovn.Uplinks{
		"lost":     {Bridge: "br-a", Links: []ovn.Uplink{{Name: "eno1", NoCarrier: true}, {Name: "eno2", NoCarrier: true}}},
		"one-left": {Bridge: "br-b", Links: []ovn.Uplink{{Name: "eno3", NoCarrier: true}, {Name: "eno4"}}},
		"chained":  {Bridge: "br-c"},
		"isolated": {Bridge: "br-d", Isolated: true},
		"missing":  {Bridge: "br-e", Missing: true},
	})
	want := map[string]world.Fault{
		"lost": {Kind: world.FaultUplink, Links: "eno1, eno2", Bridge: "br-a",
			Message: "no carrier on eno1, eno2, which connects bridge br-a to network lost"},
		"isolated": {Kind: world.FaultUplink, Bridge: "br-d",
			Message: "bridge br-d, which should lead to network isolated, has no interface of the node as a port"},
		"missing": {Kind: world.FaultUplink, Bridge: "br-e",
			Message: "bridge br-e, which should lead to network missing, does not exist"},
	}
	if !maps.Equal(got, want) {
		t.Errorf("lost %v, want %v", got, want)
	}
}

// A fault takes effect at once and lasts until it has been absent for the recovery time.
func TestFaultsClearAfterStablePeriod(t *testing.T) {
	s, start := faultHistory{}, time.Unix(1000, 0)
	down := map[string]world.Fault{"provider": {Kind: world.FaultUplink, Message: "no carrier"}}
	for _, step := range []struct {
		at   time.Duration
		seen map[string]world.Fault
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
	const absent, crashed, silent, answered = unixctl.Absent, unixctl.Crashed, unixctl.Silent, unixctl.Answered
	type beat = unixctl.ProbeResult
	for name, c := range map[string]struct {
		pulses []beat // one per 500 ms
		want   string
	}{
		"never seen":             {[]beat{absent, absent, absent, absent}, ""},
		"well":                   {[]beat{answered, answered}, ""},
		"just gone":              {[]beat{answered, absent}, ""},
		"gone":                   {[]beat{answered, absent, absent}, gone},
		"crashed before we came": {[]beat{crashed, crashed, crashed}, gone},
		"back":                   {[]beat{answered, absent, crashed, answered}, ""},
		"busy":                   {slices.Concat([]beat{answered}, slices.Repeat([]beat{silent}, 59)), ""},
		"restarts after a recompute": {slices.Concat([]beat{answered}, slices.Repeat([]beat{silent}, 10),
			[]beat{absent}), ""},
		"gone after a recompute": {slices.Concat([]beat{answered}, slices.Repeat([]beat{silent}, 10),
			[]beat{absent, crashed}), gone},
		"restarts while it is silent": {[]beat{answered, absent, silent, absent}, ""},
		"hangs":                       {slices.Repeat([]beat{silent}, 61), hangs},
		"ends after it hung":          {slices.Concat(slices.Repeat([]beat{silent}, 61), []beat{absent}), gone},
	} {
		v := newControllerTracker()
		var got string
		for i, p := range c.pulses {
			got = v.observe(time.Unix(1000, 0).Add(time.Duration(i)*checkInterval), p)
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A fault names the daemon that does not work. Without ovs-vswitchd, ovn-controller is not the one to restart.
func TestDaemonFaultNamesTheDaemon(t *testing.T) {
	const absent, crashed, silent, answered = unixctl.Absent, unixctl.Crashed, unixctl.Silent, unixctl.Answered
	for _, c := range []struct {
		name                 string
		vswitchd, controller unixctl.ProbeResult
		checks               int
		kind                 world.FaultKind
		want                 string
	}{
		{"both answer", answered, answered, 100, "", ""},
		{"ovs-vswitchd was killed", crashed, answered, 3, world.FaultVswitchd, "ovs-vswitchd is not running: "},
		{"ovs-vswitchd hangs", silent, answered, 61, world.FaultVswitchd, "ovs-vswitchd has not answered for 30s: "},
		{"ovs-vswitchd is busy", silent, answered, 60, "", ""},
		{"the socket of ovs-vswitchd is elsewhere", absent, answered, 100, "", ""},
		{"ovn-controller was killed", answered, crashed, 3, world.FaultOVNController, "ovn-controller is not running: "},
		{"both were killed", crashed, crashed, 3, world.FaultVswitchd, "ovs-vswitchd is not running: "},
	} {
		g := &Guard{vswitchdHealth: newVswitchdTracker(), controllerHealth: newControllerTracker()}
		var got world.Fault
		for i := range c.checks {
			got = g.daemonFault(time.Unix(1000, 0).Add(time.Duration(i)*checkInterval), c.vswitchd, c.controller)
		}
		if got.Kind != c.kind || (got.Message == "") != (c.want == "") || !strings.HasPrefix(got.Message, c.want) {
			t.Errorf("%s: %+v, want %s %q", c.name, got, c.kind, c.want)
		}
	}
}

// A fault that replaces another one of the same networks counts in its own kind.
func TestMetricsCountFaultsByKind(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	steps := []map[string]world.Fault{
		{},
		{world.EveryNetwork: {Kind: world.FaultOVNController, Message: "it is not running"}},
		{world.EveryNetwork: {Kind: world.FaultVswitchd, Message: "it is not running"},
			"provider": {Kind: world.FaultUplink, Message: "no carrier"}},
	}
	for i, now := range steps[1:] {
		m.update(steps[i], now)
	}
	for kind, want := range map[world.FaultKind][2]float64{
		world.FaultOVNController: {1, 0}, world.FaultVswitchd: {1, 1}, world.FaultUplink: {1, 1},
	} {
		total := testutil.ToFloat64(m.faults.WithLabelValues(string(kind)))
		active := testutil.ToFloat64(m.active.WithLabelValues(string(kind)))
		if total != want[0] || active != want[1] {
			t.Errorf("%s: %v detected and %v active, want %v", kind, total, active, want)
		}
	}
}
