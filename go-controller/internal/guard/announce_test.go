// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A claim is announced at once, or as soon as OVN has a port for the shard on the bridge, and then twice more.
func TestClaimsAreAnnouncedThreeTimes(t *testing.T) {
	start := time.Now()
	for name, c := range map[string]struct {
		// wakeups and portAt are times after the claim, in milliseconds. OVN's port exists from portAt on.
		wakeups []int
		portAt  int
		want    []int
		done    bool
	}{
		"at once":                       {[]int{0, 10, 49, 50, 60, 149, 150}, 0, []int{0, 50, 150}, true},
		"woken late":                    {[]int{0, 80, 170, 180}, 0, []int{0, 80, 180}, true},
		"the port is late":              {[]int{0, 20, 30, 40, 90, 189, 190}, 30, []int{30, 90, 190}, true},
		"the port is too late":          {[]int{0, 500, 1000}, 999, nil, true},
		"announcements are not over":    {[]int{0, 50}, 0, []int{0, 50}, false},
		"the port is waited for":        {[]int{0, 999}, 5000, nil, false},
		"the port was there and is not": {[]int{0, 50}, -10, []int{0}, true},
	} {
		p := &pendingClaim{until: start.Add(announceTimeout)}
		var sent []int
		done := false
		for _, ms := range c.wakeups {
			if done {
				t.Errorf("%s: over before %d ms", name, ms)
			}
			done = p.advance(start.Add(time.Duration(ms)*time.Millisecond), func(ovn.Claim) bool {
				if ms < c.portAt || c.portAt < 0 && ms >= -c.portAt {
					return false
				}
				sent = append(sent, ms)
				return true
			})
		}
		if !slices.Equal(sent, c.want) || done != c.done {
			t.Errorf("%s: announced at %v, over: %t; want at %v, over: %t", name, sent, done, c.want, c.done)
		}
		if next, ok := nextAnnouncement([]*pendingClaim{p}); ok != (len(sent) > 0) || ok && !next.Equal(p.next) {
			t.Errorf("%s: next at %s, %t", name, next, ok)
		}
	}
}

// Announcements are repeated after the interval of the domain, those of several shards not all at once.
func TestAnnouncementsAreRepeated(t *testing.T) {
	shard := func(index int) world.ShardID { return world.ShardID{Domain: "lan", Index: index} }
	held := func(interval time.Duration, indexes ...int) (out []ovn.Claim) {
		for _, i := range indexes {
			out = append(out, ovn.Claim{Shard: shard(i), Repeat: interval})
		}
		return out
	}
	start := time.Now()
	r := repeats{}
	var sent []string
	run := func(from, to int, held []ovn.Claim) {
		for s := from; s < to; s += 2 {
			for _, c := range r.due(held, start.Add(time.Duration(s)*time.Second)) {
				sent = append(sent, fmt.Sprintf("%d@%d", c.Shard.Index, s))
			}
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(sent, want) {
			t.Errorf("%s: announced %v, want %v", what, sent, want)
		}
		sent = nil
	}
	run(0, 100, held(0, 0, 1))
	expect("without an interval")
	run(100, 160, held(40*time.Second, 0, 1))
	expect("two shards", "0@120", "1@140")
	run(160, 190, held(40*time.Second, 0))
	expect("one is given up", "0@160")
	run(190, 240, held(40*time.Second, 0, 1))
	expect("and claimed again", "0@200", "1@230")
	run(240, 262, held(10*time.Second, 0))
	expect("the interval is shorter", "0@240", "0@250", "0@260")
	run(262, 283, held(time.Second, 0))
	expect("an interval that no L2Domain can have", "0@270", "0@280")
	if len(r) != 1 {
		t.Errorf("%d shards are remembered", len(r))
	}
}
