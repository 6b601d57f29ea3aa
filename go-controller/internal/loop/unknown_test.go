// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// unknown returns a set of Services without a known plan.
func unknown(keys ...world.Key) map[world.Key]struct{} {
	set := map[world.Key]struct{}{}
	for _, k := range keys {
		set[k] = struct{}{}
	}
	return set
}

// expectPort expects the port with which the dataplane has a Service, 0 for none.
func expectPort(t *testing.T, what string, d *recording.Dataplane, k world.Key, want uint16) {
	t.Helper()
	synctest.Wait()
	var got uint16
	if s := d.Services()[k]; s != nil {
		got = s.Listeners[0].Port
	}
	expect(t, what, got, want)
}

// A Service whose plan can't be read, for example because another release wrote it, keeps what a process before has
// programmed, until it is gone.
func TestServiceWithAnUnknownPlanStays(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		unread := key(99)
		d.Put(unread, service(99, 80))
		r.Set(topology("physnet"), many(1, 80), unknown(unread))
		expectPort(t, "at the start", d, unread, 80)
		r.Resync()
		expectPort(t, "after everything was applied again", d, unread, 80)
		r.Change(plans{unread: nil})
		expectPort(t, "after its ServicePlan was deleted", d, unread, 0)
		d.Put(unread, service(99, 80))
		r.Set(topology("physnet"), many(1, 80), unknown(unread))
		expectPort(t, "there again", d, unread, 80)
		r.Change(plans{unread: service(99, 81)})
		expectPort(t, "once it was read", d, unread, 81)
		r.Set(topology("physnet"), many(1, 80), unknown(unread))
		r.Set(topology("physnet"), many(1, 80), nil)
		expectPort(t, "when it is not known any more", d, unread, 0)
	})
}

// A plan or a removal that has failed is not repeated once the plan is unknown, whatever is due.
func TestFailedServiceWithAnUnknownPlanStays(t *testing.T) {
	for name, failing := range map[string]plans{"plan": many(1, 81), "removal": {}} {
		t.Run(name, func(t *testing.T) {
			run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
				r.Set(topology("physnet"), many(1, 80), nil)
				synctest.Wait()
				d.Break(key(0))
				r.Set(topology("physnet"), failing, nil)
				synctest.Wait()
				expect(t, "failed", r.Result(key(0)) != nil && r.Result(key(0)).Err != nil, true)
				r.Set(topology("physnet"), nil, unknown(key(0)))
				synctest.Wait()
				d.Break()
				before := d.Calls().Changes
				pass(2 * time.Minute)
				expectPort(t, "after its retry was due", d, key(0), 80)
				r.Set(topology("other"), nil, unknown(key(0)))
				expectPort(t, "after another topology", d, key(0), 80)
				r.Resync()
				expectPort(t, "after everything was applied again", d, key(0), 80)
				expect(t, "changes", d.Calls().Changes-before, 0)

				// The same plan as before is applied, because nothing is known of what the dataplane has.
				r.Set(topology("physnet"), many(1, 81), nil)
				expectPort(t, "known again", d, key(0), 81)
			})
		})
	}
}

// A repetition that is still due is not made once the plan is unknown. It is made when the plan is known again.
func TestStaleServiceWithAnUnknownPlanStays(t *testing.T) {
	d := &applying{}
	synctest.Test(t, func(t *testing.T) {
		r := loop.New(d, loop.Options{Batch: 1})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		r.Set(topology("physnet"), many(2, 80), nil)
		synctest.Wait()
		d.during = func() { // the first repetition
			d.during = nil
			r.Set(topology("physnet"), nil, unknown(key(0), key(1)))
		}
		before := d.Calls()
		r.Resync()
		expectPort(t, "the first one", &d.Dataplane, key(0), 80)
		expectPort(t, "the second one", &d.Dataplane, key(1), 80)
		expect(t, "repeated", d.Calls().Changes-before.Changes, 1)
		expect(t, "results", len(r.Results()), 0)
		r.Set(topology("physnet"), many(2, 80), nil)
		synctest.Wait()
		expect(t, "repeated once they are known again", d.Calls().Changes-before.Changes, 3)
		expect(t, "results once they are known again", len(r.Results()), 2)
	})
}

// Neither a whole state without maps nor one with nil plans differs from an empty one.
func TestChangeAfterAnEmptyState(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Put(key(1), service(1, 80))
		r.Set(topology("physnet"), nil, nil)
		expectPort(t, "without a plan", d, key(1), 0)
		r.Change(plans{key(0): service(0, 80)})
		expectPort(t, "changed alone", d, key(0), 80)
		d.Put(key(1), service(1, 80))
		r.Set(topology("physnet"), plans{key(0): service(0, 80), key(1): nil}, unknown(key(0)))
		r.Resync()
		expectPort(t, "with a plan, although it is said to be unknown", d, key(0), 80)
		expectPort(t, "with a nil plan", d, key(1), 0)
	})
}
