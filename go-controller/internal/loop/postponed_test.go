// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
)

// A change that the dataplane postpones is made when it is due, with the newest plan, although nothing else happens.
func TestPostponedChangeIsMadeWithTheNewestPlan(t *testing.T) {
	reported := map[bool]int{}
	o := loop.Options{Report: func(results []loop.Result) {
		for _, r := range results {
			reported[r.Postponed]++
		}
	}}
	run(t, o, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(2, 80), nil)
		synctest.Wait()
		before := d.Calls()
		changes := func() int { return d.Calls().Changes - before.Changes }
		d.Postpone(key(1), time.Now().Add(7*time.Second))
		r.Change(plans{key(0): service(0, 81), key(1): service(1, 81)})
		synctest.Wait()
		got := r.Result(key(1))
		expect(t, "reported as postponed", got.Postponed && r.Results()[key(1)].Postponed, true)
		expect(t, "the port of the plan that the dataplane has", got.Plan.Listeners[0].Port, 80)
		expect(t, "error", got.Err, nil)
		expect(t, "another Service is postponed", r.Result(key(0)).Postponed, false)
		expect(t, "changes", changes(), 2)
		expect(t, "reported", reported[true], 1)

		pass(3 * time.Second)
		r.Resync()
		r.Set(topology("physnet"), plans{key(0): service(0, 81), key(1): service(1, 81)}, nil)
		synctest.Wait()
		expect(t, "changes while it waits: those of others", changes(), 3)
		r.Change(plans{key(1): service(1, 82)})
		synctest.Wait()
		expect(t, "changes after another plan, which the dataplane might have accepted", changes(), 4)
		expect(t, "reported as postponed, although it takes less than it did", r.Result(key(1)).Postponed, true)

		pass(4 * time.Second)
		expectPort(t, "when it is due", d, key(1), 82)
		expect(t, "changes", changes(), 5)
		expect(t, "still postponed", r.Result(key(1)).Postponed || r.Results()[key(1)].Postponed, false)
	})
}

// A change that waits a moment is not reported, one that is taken back is made by nothing, and one of a Service that is
// gone is forgotten.
func TestPostponedChangeOfAGoneServiceIsForgotten(t *testing.T) {
	run(t, loop.Options{NamespaceBatch: 1}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(1, 80), nil)
		synctest.Wait()
		d.Postpone(key(1), time.Now().Add(time.Minute))
		r.Change(plans{key(1): service(1, 80)})
		synctest.Wait()
		expect(t, "reported as postponed", r.Result(key(1)).Postponed, true)
		r.Change(plans{key(0): service(0, 81)})
		expectPort(t, "another Service of the namespace", d, key(0), 81)
		r.Set(topology("physnet"), plans{key(1): service(1, 80), key(0): service(0, 82)}, nil)
		expectPort(t, "another Service of the namespace, with a whole state", d, key(0), 82)
		before := d.Calls().Changes
		r.Change(plans{key(1): nil})
		synctest.Wait()
		expect(t, "removals, so that the dataplane does not count on the change", d.Calls().Changes-before, 1)
		expect(t, "result", r.Result(key(1)), nil)
		expect(t, "results", len(r.Results()), 1)

		before = d.Calls().Changes
		d.Postpone(key(0), time.Now().Add(time.Second))
		r.Change(plans{key(0): service(0, 83)})
		synctest.Wait()
		expect(t, "reported as postponed", r.Result(key(0)).Postponed, false)
		r.Change(plans{key(0): service(0, 82)})
		pass(time.Minute)
		synctest.Wait()
		expectPort(t, "taken back", d, key(0), 82)
		expect(t, "changes: postponed, and repeated when that was due", d.Calls().Changes-before, 2)
	})
}

// A plan that failed and is postponed when it is repeated is not tried again before it is due.
func TestPostponedFailureWaits(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Break(key(0))
		r.Set(topology("physnet"), many(1, 80), nil)
		synctest.Wait()
		d.Break()
		d.Postpone(key(0), time.Now().Add(time.Minute))
		before := d.Calls().Changes
		pass(59 * time.Second)
		synctest.Wait()
		expect(t, "changes", d.Calls().Changes-before, 1)
		expect(t, "the error of before is reported", r.Result(key(0)).Err != nil && r.Result(key(0)).Postponed, true)
		pass(time.Second)
		expectPort(t, "when it is due", d, key(0), 80)
	})
}
