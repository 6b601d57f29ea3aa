// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// With preempt, a shard leaves a gateway with a fault at once, and returns once the gateway has been without one for a
// while, which becomes longer if faults are repeated, until there were none for long.
func TestPreemptWaitsAfterAFault(t *testing.T) {
	w := func(seconds int, faulty bool) *world.Snapshot {
		w := worldtest.Small(1, worldtest.Service(web, 1))
		w.Now = time.Unix(int64(1000+seconds), 0)
		d := w.Domains[0]
		d.Preempt, d.Preferred = true, []world.Preference{{Weight: 1, Nodes: []string{"n1"}}}
		if faulty {
			w.Nodes[0].Faults = map[string]world.Fault{world.EveryNetwork: {Kind: world.FaultUplink, Message: "no link"}}
		}
		return w
	}
	var st State
	active := "n1"
	for _, c := range []struct {
		at     int
		faulty bool
		active string
		due    int // 0 for never
	}{
		{0, false, "n1", 0},
		{1, true, "other", 0},
		{3, false, "other", 33},
		{32, false, "other", 33},
		{33, false, "n1", 0},
		{100, true, "other", 0},
		{102, false, "other", 162},
		{104, true, "other", 0},
		{106, false, "other", 226},
		{226, false, "n1", 0},
		{227, true, "other", 0}, {229, false, "other", 469},
		{230, true, "other", 0}, {232, false, "other", 712},
		{233, true, "other", 0}, {235, false, "other", 715},
		{715, false, "n1", 0},
		{720, true, "other", 0}, // nothing is left of the faults that ended more than maxHoldTime ago
		{721, false, "other", 751},
	} {
		now := w(c.at, c.faulty)
		now.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: active, Settled: true,
			Order: []string{active}}}
		d := st.Decide(now)
		domain := d.Layout.Domains[0]
		active = domain.Shards[0].Gateways[0].Node
		if (active == "n1") != (c.active == "n1") {
			t.Errorf("after %d s: %s is first, want %s", c.at, active, c.active)
		}
		var due time.Time
		if c.due != 0 {
			due = time.Unix(int64(1000+c.due), 0)
		}
		if !d.Due.Equal(due) {
			t.Errorf("after %d s: the next pass is due at %s, want %s", c.at, d.Due, due)
		}
		told := strings.Contains(strings.Join(domain.Warnings, "; "), "moves no shard back to n1 yet")
		if told != (c.due != 0) {
			t.Errorf("after %d s: %v", c.at, domain.Warnings)
		}
	}
}
