// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

func TestRoundsOfAPathAreOneRate(t *testing.T) {
	var e pathTotal
	e.add(load.Result{Units: 1000, Seconds: 1, Failed: 1, Error: "first"}, usage{cpu: 250 * time.Millisecond,
		cpuAll: 500 * time.Millisecond, gateway: counters{packets: 10, lookups: 25}})
	e.add(load.Result{Units: 500, Seconds: 1, Failed: 1, Error: "second"}, usage{cpu: 125 * time.Millisecond,
		cpuAll: 250 * time.Millisecond, gateway: counters{packets: 10, lookups: 25}})
	got := e.rate(1, 1000)
	want := pathRate{PerSecond: 750, CPU: 0.25, CPUAll: 0.5, Recirculations: 1.5, Failed: 2, Error: "first"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if none := (pathTotal{}).rate(1, 1000); none != (pathRate{}) {
		t.Errorf("without units: %+v", none)
	}
	bytes := pathTotal{Result: load.Result{Units: 125_000_000, Seconds: 2}, usage: usage{cpu: time.Second,
		cpuAll: 3 * time.Second}}.rate(gbitPerByte, 1/gbitPerByte)
	if bytes != (pathRate{PerSecond: 0.5, CPU: 1, CPUAll: 3}) {
		t.Errorf("a gigabit in 2 s: %+v", bytes)
	}
}

func TestRatioIsTheMedianOfTheRounds(t *testing.T) {
	var vip, nodePort, pod pathTotal
	for i, units := range []int{90, 200, 80} {
		second := usage{cpu: time.Second}
		vip.add(load.Result{Units: units, Seconds: 1}, second)
		nodePort.add(load.Result{Units: 100, Seconds: float64(1 + i)}, second)
		pod.add(load.Result{Units: 300, Seconds: 1}, second)
	}
	r := newRateFigure(rateFigure{Section: "udp"}, []pathTotal{vip, nodePort, pod}, 1, 100)
	want := rateFigure{Section: "udp", Rounds: []float64{0.9, 4, 2.4}, Ratio: 2.4, CPURatio: 0.811}
	want.Paths = paths[pathRate]{VIP: pathRate{PerSecond: 123.3, CPU: 0.811}, NodePort: pathRate{PerSecond: 50, CPU: 1},
		Pod: pathRate{PerSecond: 300, CPU: 0.333}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	r = newRateFigure(rateFigure{}, []pathTotal{vip, {rounds: make([]float64, 3)}, {}}, 1, 1)
	if r.Ratio != 0 || r.CPURatio != 0 {
		t.Errorf("without a NodePort: ratios %v and %v", r.Ratio, r.CPURatio)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1, 3, 2}, 2}, {[]float64{5, 1, 3}, 3}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   float64
	}{{0, 3, 0}, {1234.5, 3, 1230}, {0.0012345, 3, 0.00123}, {-1.26, 2, -1.3}, {99.96, 3, 100}} {
		if got := round(c.v, c.digits); got != c.want {
			t.Errorf("round(%v, %d) = %v, want %v", c.v, c.digits, got, c.want)
		}
	}
}

func TestCountsArePerConnection(t *testing.T) {
	got := costOf(load.Result{Units: 300, Failed: 2}, counters{packets: 3000, lookups: 4500, upcalls: 338, flows: 310},
		counters{packets: 1, lookups: 301, upcalls: 9})
	want := connectionCost{Connections: 300, Failed: 2, Upcalls: 338, Megaflows: 310, Recirculations: 5, Packets: 10,
		PodsUpcalls: 9, PodsRecirculations: 1}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLines(t *testing.T) {
	r := rateFigure{Section: "stream", Family: "IPv4", Backend: "elsewhere", Unit: "Gbit/s", CPUUnit: "Gbit",
		Paths: paths[pathRate]{VIP: pathRate{PerSecond: 1.02, CPU: 0.7, Recirculations: 1.26, Failed: 1},
			NodePort: pathRate{PerSecond: 1, CPU: 0.75, Recirculations: 3}, Pod: pathRate{PerSecond: 1.3, CPU: 0.5}}}
	r.Ratio, r.CPURatio = 1.02, 0.933
	o := connectionFigure{Backends: "six backends", Family: "IPv6", Ratio: 5.12, Paths: paths[connectionCost]{
		VIP:      connectionCost{Connections: 300, Upcalls: 338, Megaflows: 310, Recirculations: 15},
		NodePort: connectionCost{Upcalls: 66, Megaflows: 60, Recirculations: 35},
		Pod:      connectionCost{Upcalls: 5, Megaflows: 4}}}
	f := floodFigure{Target: "VIP", Family: "IPv4", Sent: 100_000, Seconds: 10, Upcalls: 100_010, LostUpcalls: 3,
		Megaflows: 99_000, FlowLimit: 200_000, CPU: 9.5, Packets: delaysOf(probe.Result{Sent: 1000, Lost: 2,
			P50: time.Millisecond, P99: 20 * time.Millisecond}), New: delaysOf(probe.Result{Sent: 500})}
	for _, c := range []struct{ got, want string }{
		{r.String(), "stream       IPv4   elsewhere      1.02        1      1.3 Gbit/s          1.02 |                0.7" +
			"     0.75      0.5 Gbit   0.93 | 1.26 3.00 0.00; failed 1, 0, 0"},
		{o.String(), "300, six backends         IPv6             338       66    5           5.1 |            310       60" +
			"    4 |                       15       35    0"},
		{f.String(), "VIP                     IPv4    10000  100010    3 99000 200000   9.5 |    2 of 1000 lost, p50      " +
			"1 p99     20 ms |    0 of  500 lost, p50      0 p99      0 ms"},
	} {
		if c.got != c.want {
			t.Errorf("got\n%s\nwant\n%s", c.got, c.want)
		}
	}
}
