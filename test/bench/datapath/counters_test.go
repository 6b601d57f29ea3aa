// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// Outputs of Open vSwitch 3.1.0, and of 4.0.0 with a second thread added.
const (
	show31 = `netdev@ovs-netdev:
  lookups: hit:6 missed:6 lost:0
  flows: 5
  port 0: ovs-netdev (tap)
  port 1: eth-lan
`
	stats31 = `main thread:
  packets received: 12
  packet recirculations: 0
  avg. datapath passes per packet: 1.00
  phwol hits: 0
  emc hits: 0
  megaflow hits: 4
  avg. subtable lookups per megaflow hit: 1.00
  miss with success upcall: 6
  miss with failed upcall: 0
  avg. packets per output batch: 1.00
`
	show40 = `netdev@ovs-netdev:
  lookups: hit:125 missed:19 lost:1
  flows: 16
  port 9: genev_sys_6081 (geneve: packet_type=ptap)
`
	stats40 = `
Time: 15:10:05.959
Measurement duration: 3.669 s

main thread:

  Rx packets:                   44  (0 Kpps)
  Datapath passes:             134  (3.05 passes/pkt)
  - Megaflow hits:              20  ( 45.5 %, 1.05 subtbl lookups/hit)
  - Upcalls:                    19  ( 43.2 %)
  Tx packets:                   39  (0 Kpps)

pmd thread numa_id 0 core_id 1:

  Rx packets:                    6  (0 Kpps)
`
)

func TestParseCounters(t *testing.T) {
	for name, c := range map[string]struct {
		show, stats string
		want        counters
	}{
		"3.1": {show31, stats31, counters{packets: 12, lookups: 12, upcalls: 6, flows: 5}},
		"4.0": {show40, stats40, counters{packets: 50, lookups: 145, upcalls: 19, lost: 1, flows: 16}},
	} {
		got, err := parseCounters(c.show, c.stats)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for name, c := range map[string][2]string{
		"no datapath": {"", stats40}, "two datapaths": {show31 + show40, stats40}, "no thread": {show31, ""},
		"too large": {show31, "Rx packets: 99999999999999999999"},
	} {
		if got, err := parseCounters(c[0], c[1]); err == nil {
			t.Errorf("%s: %+v, want an error", name, got)
		}
	}
}

func TestParseFlowLimit(t *testing.T) {
	const show = `netdev@ovs-netdev:
  flows         : (current 16) (avg 15) (max 16) (limit 16000)
  dump duration : 1ms
  ufid enabled : true

  4: (keys 16)
`
	if limit, err := parseFlowLimit(show); err != nil || limit != 16000 {
		t.Errorf("limit %d, %v, want 16000", limit, err)
	}
	for _, bad := range []string{"", show + show} {
		if limit, err := parseFlowLimit(bad); err == nil {
			t.Errorf("limit %d in %q, want an error", limit, bad)
		}
	}
}

func TestCountersAreSubtractedAndAdded(t *testing.T) {
	early := counters{packets: 1, lookups: 3, upcalls: 1, lost: 1, flows: 9}
	late := counters{packets: 11, lookups: 33, upcalls: 6, lost: 2, flows: 4}
	got := late.since(early)
	if want := (counters{packets: 10, lookups: 30, upcalls: 5, lost: 1, flows: -5}); got != want {
		t.Errorf("since: %+v, want %+v", got, want)
	}
	if n := got.recirculations(); n != 20 {
		t.Errorf("%d recirculations, want 20", n)
	}
	if n := (counters{packets: 2, lookups: 1}).recirculations(); n != 0 {
		t.Errorf("%d recirculations, want none", n)
	}
	if sum := early.plus(got); sum != late {
		t.Errorf("plus: %+v, want %+v", sum, late)
	}
}
