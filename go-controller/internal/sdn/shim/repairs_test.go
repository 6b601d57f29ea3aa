// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// spoil makes the annotation of a node unreadable, as its kubelet can do.
func (r *running) spoil(name string) {
	nodes := []*world.Node{node("n1", "1", r.n1), node("n2", "1", r.n2)}
	for _, n := range nodes {
		if n.Name == name {
			n.Kernel.Version, n.Kernel.Problem = r.newVersion(), "not JSON"
		}
	}
	r.observe(nodes...)
}

// A node that can't be written delays no repair of another one whose annotation changes meanwhile.
func TestNodeThatCannotBeWrittenDelaysNoRepairOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.observe(node("n1", "1", r.n1), node("n2", "1", r.n2))
		r.configure(gateways("n1"))
		r.writeErrors["n2"] = errors.New("annotations are too long")
		r.spoil("n2")
		r.onWrite = func(string) { r.spoil("n1") }
		r.drifts = 0
		if err := r.Configure(r.Context(), gateways("n1")); err == nil {
			t.Error("n2 has been written")
		}
		if r.drifts != 1 {
			t.Errorf("%d repairs are requested, want that of n1", r.drifts)
		}
	})
}

// A kubelet that undoes each repair of its node's annotation delays the repair of no other one.
func TestNodeThatUndoesRepairsDelaysNoRepairOfOthers(t *testing.T) {
	during(t, func(r *running) {
		r.onDrift = func() bool { r.runner.Resync(); return true }
		const most = 2 * dataplane.DriftBurst
		written := map[string]int{}
		r.onWrite = func(name string) {
			undo := false
			r.set(func() {
				written[name]++
				undo = name == "n2" && written[name] <= most
			})
			if undo {
				r.spoil(name)
			}
		}
		r.spoil("n2")
		pass(5 * time.Minute)
		if n := written["n2"]; n < dataplane.DriftBurst || n > most {
			t.Errorf("n2 is repaired %d times, want at least %d and at most %d", n, dataplane.DriftBurst, most)
		}
		r.spoil("n1")
		synctest.Wait()
		if written["n1"] != 1 {
			t.Errorf("n1 is repaired %d times", written["n1"])
		}
	})
}
