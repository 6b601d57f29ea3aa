// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
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

// A node can leave its L2Domain and return in other ways than by a fault: by its label, or what it reports of its
// bridges. Its shards do not return each time either.
func TestPreemptWaitsAfterAnyExclusion(t *testing.T) {
	for name, exclude := range map[string]func(*world.Snapshot){
		"drain":    func(w *world.Snapshot) { w.Nodes[0].Draining = "label" },
		"bridge":   func(w *world.Snapshot) { w.Bridges[w.Nodes[0].Chassis] = world.Bridges{} },
		"selector": func(w *world.Snapshot) { w.Domains[0].Nodes = w.Domains[0].Nodes[1:] },
		"chassis":  func(w *world.Snapshot) { w.Nodes[0].Chassis = "" },
	} {
		var st State
		active, back := "n1", 0
		pass := func(second int, excluded bool) *place.Domain {
			w := worldtest.Small(1, worldtest.Service(web, 1))
			w.Now = time.Unix(int64(1000+second), 0)
			w.Bridges = map[string]world.Bridges{}
			for _, n := range w.Nodes {
				w.Bridges[n.Chassis] = world.Bridges{w.Domains[0].PhysicalNetwork: "br-lan"}
			}
			w.Domains[0].Preempt, w.Domains[0].Preferred = true, []world.Preference{{Weight: 1, Nodes: []string{"n1"}}}
			if excluded {
				exclude(w)
			}
			w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: active, Settled: true,
				Order: []string{active}}}
			d := st.Decide(w).Layout.Domains[0]
			before := active
			active = d.Shards[0].Gateways[0].Node
			if active == "n1" && before != "n1" {
				back++
			}
			return d
		}
		if pass(0, false); active != "n1" {
			t.Errorf("%s: %s is first, want n1", name, active)
		}
		if pass(1, true); active == "n1" {
			t.Errorf("%s: n1 is excluded and first", name)
		}
		for s := 2; s < 600; s += 2 {
			pass(s, s%4 == 0)
		}
		if back > 8 {
			t.Errorf("%s: the shard returned %d times in 10 minutes", name, back)
		}
		if pass(600+int(maxHoldTime.Seconds()), false); active != "n1" {
			t.Errorf("%s: the shard does not return", name)
		}
		d := pass(2000, false)
		if warnings := strings.Join(d.Warnings, "; "); strings.Contains(warnings, "moves no shard back") {
			t.Errorf("%s: %s", name, warnings)
		}
	}
}

// A node that is new, or the last one, has no shard to get back.
func TestPreemptMovesShardsToANewNodeAtOnce(t *testing.T) {
	var st State
	for i, nodes := range [][]string{{"n2"}, {"n1", "n2"}} {
		w := worldtest.Small(1, worldtest.Service(web, 1))
		w.Now = time.Unix(int64(1000+i), 0)
		w.Domains[0].Nodes = nodes
		w.Domains[0].Preempt, w.Domains[0].Preferred = true, []world.Preference{{Weight: 1, Nodes: []string{"n1"}}}
		w.ShardStates = map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2", Settled: true,
			Order: []string{"n2"}}}
		if first := st.Decide(w).Layout.Domains[0].Shards[0].Gateways[0].Node; first != nodes[0] {
			t.Errorf("of nodes %v, %s is first", nodes, first)
		}
	}
}
