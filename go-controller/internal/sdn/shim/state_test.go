// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestHealth(t *testing.T) {
	repeat := func(p heartbeat, n int) []heartbeat {
		var list []heartbeat
		for range n {
			list = append(list, p)
		}
		return list
	}
	for name, c := range map[string]struct {
		pulses []heartbeat // one per second
		lost   bool
	}{
		"well":                             {[]heartbeat{well, well}, false},
		"silent twice":                     {[]heartbeat{well, silent, silent}, false},
		"silent three times":               {[]heartbeat{well, silent, silent, silent}, true},
		"silent three times, not in a row": {[]heartbeat{silent, silent, well, silent, silent}, false},
		"back for a moment":                {[]heartbeat{silent, silent, silent, well, well}, true},
		"back":                             {[]heartbeat{silent, silent, silent, well, well, well}, false},
		"reports that it can't":            {[]heartbeat{well, unfit}, true},
		"no listener, the kernel holds on": {append([]heartbeat{well}, repeat(refused, 12)...), false},
		"no listener for too long":         {append([]heartbeat{well}, repeat(refused, 13)...), true},
		"a listener again": {append(repeat(refused, 10),
			append([]heartbeat{well}, repeat(refused, 10)...)...), false},
		"silent and refused in turn":                   {[]heartbeat{silent, refused, silent, silent}, false},
		"the kernel accepts, the agent hangs":          {append([]heartbeat{well}, repeat(hung, 12)...), false},
		"the kernel accepts, the agent hangs too long": {append([]heartbeat{well}, repeat(hung, 13)...), true},
		"hung and silent in turn":                      {slices.Repeat([]heartbeat{hung, silent}, 6), false},
		"hung and silent in turn for too long":         {slices.Repeat([]heartbeat{hung, silent}, 7), true},
		"hung until it answers": {append(repeat(hung, 10),
			append([]heartbeat{well}, repeat(hung, 10)...)...), false},
	} {
		var s state
		now := time.Unix(1000, 0)
		for _, p := range c.pulses {
			s.observe(now, p, "why")
			now = now.Add(time.Second)
		}
		if (s.lost != "") != c.lost {
			t.Errorf("%s: lost %q, want lost: %v", name, s.lost, c.lost)
		}
	}
}

// A new controller detects lost nodes within about a second.
func TestFirstProbesAreSpreadOverTime(t *testing.T) {
	var s state
	var took time.Duration
	for s.lost == "" {
		took += s.observe(time.Unix(1000, 0).Add(took), silent, "why")
	}
	if took -= probeEvery; took > time.Second {
		t.Errorf("a node that is silent from the start is lost after %s", took)
	}
	if wait := s.observe(time.Unix(2000, 0), silent, "why"); wait != probeEvery {
		t.Errorf("the next check is due after %s", wait)
	}
}

// A kubelet can write the annotation of its own Node: it makes the node neither the active gateway of a shard that has
// another one according to the status of the L2Domain, nor releases an address of that one before the plans are known.
func TestForgedAnnotationTakesNothingFromANewController(t *testing.T) {
	synctest.Test(t, testForgedAnnotationTakesNothingFromANewController)
}

func testForgedAnnotationTakesNothingFromANewController(t *testing.T) {
	c := start(t)
	forged := node("n2", "1", c.n2, vip)
	forged.Kernel.Held[0].Generation = math.MaxUint64
	w := &world.Snapshot{Nodes: []*world.Node{node("n1", "1", c.n1, vip), forged}, Domains: []*world.Domain{{
		Name: shard.Domain, Gateways: map[int][]string{0: {"n3", "n2", "n1"}}, Active: map[int]string{0: "n1"}}}}
	expect := func(when string) {
		t.Helper()
		c.Observe(w)
		if got := w.ShardStates[shard]; got.Active != "n1" || !got.Settled || !slices.Equal(got.Order, []string{"n1"}) {
			t.Errorf("%s: %+v", when, got)
		}
	}
	expect("at the start")
	c.configure(gateways("n1"))
	expect("before the plan is known")
	if c.writes > 0 {
		t.Errorf("%d writes before the plan is known", c.writes)
	}
	if err := c.apply(vip); err != nil {
		t.Fatal(err)
	}
	expect("at the end")
	if c.writes != 1 || len(c.have["n2"]) > 0 {
		t.Errorf("%d writes, and n2 holds %v", c.writes, c.have["n2"])
	}
}

// The runner holds a lock while it calls Pending, and takes it when it is asked what to keep.
func TestPruneAsksWhatToKeepWithoutALock(t *testing.T) {
	synctest.Test(t, testPruneAsksWhatToKeepWithoutALock)
}

func testPruneAsksWhatToKeepWithoutALock(t *testing.T) {
	c := start(t)
	c.observe(node("n1", "1", c.n1))
	c.configure(gateways("n1"))
	if err := c.apply(vip); err != nil {
		t.Fatal(err)
	}
	err := c.Prune(t.Context(), func(world.Key) bool {
		free := c.Dataplane.mu.TryLock()
		if free {
			c.Dataplane.mu.Unlock()
		}
		return !free
	})
	if err != nil || c.has("n1", vip) {
		t.Errorf("the lock is held, or the address is kept (%v)", err)
	}
}
