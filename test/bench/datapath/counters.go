// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// counters are those of the datapath of one Open vSwitch since it started, except for flows.
type counters struct {
	// packets were received from ports. lookups are searches for a datapath flow: one for each packet, and one more
	// whenever it recirculates, as after conntrack(7) or a hash.
	packets, lookups int
	// upcalls are lookups that found no flow. lost are those that were not handled.
	upcalls, lost int
	// flows are the datapath flows, or megaflows, that exist.
	flows int
}

var (
	// lookupLine and flowsLine are of `ovs-appctl dpctl/show`.
	lookupLine = regexp.MustCompile(`(?m)^\s*lookups: hit:(\d+) missed:(\d+) lost:(\d+)`)
	flowsLine  = regexp.MustCompile(`(?m)^\s*flows: (\d+)`)
	// packetsLine is of `ovs-appctl dpif-netdev/pmd-stats-show`, which has one for each thread. Open vSwitch 4.0 changed
	// the words.
	packetsLine = regexp.MustCompile(`(?m)^\s*(?:packets received|Rx packets):\s+(\d+)`)
	// limitLine is of `ovs-appctl upcall/show`.
	limitLine = regexp.MustCompile(`\(limit (\d+)\)`)
)

// parseFlowLimit reads the output of `ovs-appctl upcall/show` for a switch with one datapath.
func parseFlowLimit(show string) (int, error) {
	limits := limitLine.FindAllStringSubmatch(show, -1)
	if len(limits) != 1 {
		return 0, fmt.Errorf("limit of datapath flows: want that of one datapath in %q", show)
	}
	return strconv.Atoi(limits[0][1])
}

// parseCounters reads the outputs of `ovs-appctl dpctl/show` for a switch with one datapath, and of `ovs-appctl
// dpif-netdev/pmd-stats-show`.
func parseCounters(show, stats string) (counters, error) {
	lookups, flows := lookupLine.FindAllStringSubmatch(show, -1), flowsLine.FindStringSubmatch(show)
	packets := packetsLine.FindAllStringSubmatch(stats, -1)
	if len(lookups) != 1 || flows == nil || len(packets) == 0 {
		return counters{}, fmt.Errorf("counters of the datapath: want lookups and flows of one datapath in %q, and packets "+
			"in %q", show, stats)
	}
	var failed error
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			failed = fmt.Errorf("counters of the datapath: %w", err)
		}
		return n
	}
	hit, missed, lost := number(lookups[0][1]), number(lookups[0][2]), number(lookups[0][3])
	c := counters{lookups: hit + missed + lost, upcalls: missed, lost: lost, flows: number(flows[1])}
	for _, thread := range packets {
		c.packets += number(thread[1])
	}
	return c, failed
}

// since returns what was counted after the earlier counters. Flows are those in addition, which may be negative.
func (c counters) since(earlier counters) counters {
	return counters{packets: c.packets - earlier.packets, lookups: c.lookups - earlier.lookups,
		upcalls: c.upcalls - earlier.upcalls, lost: c.lost - earlier.lost, flows: c.flows - earlier.flows}
}

// plus returns the sums.
func (c counters) plus(d counters) counters {
	return counters{packets: c.packets + d.packets, lookups: c.lookups + d.lookups, upcalls: c.upcalls + d.upcalls,
		lost: c.lost + d.lost, flows: c.flows + d.flows}
}

// recirculations returns how often packets recirculated. Packets that arrived between the two outputs are no negative
// ones.
func (c counters) recirculations() int { return max(0, c.lookups-c.packets) }
