// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

type plans = map[world.Key]*plan.Service

func key(i int) world.Key { return world.Key{Namespace: "default", Name: fmt.Sprintf("web-%04d", i)} }

// service returns a plan with one listener. Different ports make different plans.
func service(i int, port uint16) *plan.Service {
	vip := netip.AddrFrom4([4]byte{10, 50, byte(i >> 8), byte(i)})
	return &plan.Service{
		Key:       key(i),
		VIPs:      []plan.VIP{{Addr: vip, Shard: world.ShardID{Domain: "rack"}}},
		Listeners: []plan.Listener{{VIP: vip, Protocol: world.TCP, Port: port}},
	}
}

func many(n int, port uint16) plans {
	out := plans{}
	for i := range n {
		out[key(i)] = service(i, port)
	}
	return out
}

func topology(network string) *plan.Topology {
	return &plan.Topology{Domains: []plan.Domain{{Name: "rack", PhysicalNetwork: network}}}
}

// run starts a Runner in a synctest bubble. synctest.Wait waits for its pending work without time passing.
func run(t *testing.T, o loop.Options, f func(t *testing.T, d *recording.Dataplane, r *loop.Runner)) {
	t.Helper()
	runApplying(t, o, func(t *testing.T, d *applying, r *loop.Runner) { f(t, &d.Dataplane, r) })
}

// runApplying is run for tests that do something while the runner applies.
func runApplying(t *testing.T, o loop.Options, f func(t *testing.T, d *applying, r *loop.Runner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &applying{}
		ctx, cancel := context.WithCancel(t.Context())
		r := loop.New(d, o)
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		f(t, d, r)
		cancel()
		<-done
	})
}

// pass advances the bubble's clock.
func pass(d time.Duration) { <-time.After(d) }

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestFirstPlansAreAppliedTogetherThenPruned(t *testing.T) {
	run(t, loop.Options{Batch: 100}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Put(key(9999), service(9999, 80))
		synctest.Wait()
		expect(t, "calls before the first plans", d.Calls(), recording.Calls{})
		r.Set(topology("physnet"), many(250, 80), nil)
		synctest.Wait()
		expect(t, "calls", d.Calls(), recording.Calls{Configure: 1, Apply: 1, Prune: 1, Changes: 250})
		expect(t, "services", len(d.Services()), 250)

		r.Resync()
		synctest.Wait()
		expect(t, "calls after a repetition in batches", d.Calls(), recording.Calls{Configure: 2, Apply: 4, Prune: 2,
			Changes: 500})
	})
}

// A tenant with thousands of Services that change together does not keep those of others waiting for all of them.
func TestChangesOfANamespaceAreAppliedInParts(t *testing.T) {
	other := world.Key{Namespace: "other", Name: "web"}
	runApplying(t, loop.Options{Batch: 100, NamespaceBatch: 100}, func(t *testing.T, d *applying, r *loop.Runner) {
		d.during = func() {
			if d.Calls().Apply == 0 {
				r.Change(plans{other: service(9999, 80)})
			}
			if d.Calls().Apply == 2 && d.Services()[other] == nil {
				t.Error("the Service of the other namespace waits for more than one part")
			}
		}
		r.Set(topology("physnet"), many(1000, 80), nil)
		synctest.Wait()
		expect(t, "calls", d.Calls(), recording.Calls{Configure: 1, Apply: 10, Prune: 1, Changes: 1001})
	})
}

// A Service that gives up an address does not wait for others of its namespace once another Service gets the address.
func TestAddressIsGivenUpWithTheChangeThatGetsIt(t *testing.T) {
	other := world.Key{Namespace: "other", Name: "web"}
	run(t, loop.Options{NamespaceBatch: 1}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(100, 80), nil)
		synctest.Wait()
		before := d.Calls()
		d.OnApply(func(part []dataplane.Change) {
			has := func(k world.Key) bool {
				return slices.ContainsFunc(part, func(c dataplane.Change) bool { return c.Key == k })
			}
			if has(other) && !has(key(99)) {
				t.Error("the Service that has the address is not in the part with the one that gets it")
			}
		})
		taken := *service(99, 80)
		taken.Key = other
		changes := plans{other: &taken}
		for i := range 100 {
			changes[key(i)] = nil
		}
		r.Change(changes)
		synctest.Wait()
		expect(t, "changes", d.Calls().Changes-before.Changes, 101)
	})
}

func TestOnlyDifferencesAreApplied(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(10, 80), nil)
		synctest.Wait()
		before := d.Calls()

		r.Set(topology("physnet"), many(10, 80), nil)
		synctest.Wait()
		expect(t, "calls after equal plans", d.Calls(), before)

		changed := many(10, 80)
		changed[key(3)] = service(3, 81)
		delete(changed, key(4))
		r.Set(topology("physnet"), changed, nil)
		synctest.Wait()
		expect(t, "changes", d.Calls().Changes-before.Changes, 2)
		expect(t, "services", len(d.Services()), 9)
		expect(t, "configured", d.Calls().Configure, before.Configure)

		r.Set(topology("other"), changed, nil)
		synctest.Wait()
		expect(t, "configured after another topology", d.Calls().Configure, before.Configure+1)
		expect(t, "network", d.Topology().Domains[0].PhysicalNetwork, "other")
	})
}

func TestRevertedChangeAppliesNothing(t *testing.T) {
	runApplying(t, loop.Options{}, func(t *testing.T, d *applying, r *loop.Runner) {
		d.during = func() {
			r.Set(topology("physnet"), many(1, 81), nil)
			r.Set(topology("physnet"), many(1, 80), nil)
		}
		r.Set(topology("physnet"), many(1, 80), nil)
		synctest.Wait()
		expect(t, "calls", d.Calls(), recording.Calls{Configure: 1, Apply: 1, Prune: 1, Changes: 1})
	})
}

func TestFailingKeyDoesNotBlockOthers(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Break(key(0))
		r.Set(topology("physnet"), many(3, 80), nil)
		synctest.Wait()
		expect(t, "services", len(d.Services()), 2)

		r.Set(topology("physnet"), many(4, 80), nil)
		synctest.Wait()
		expect(t, "services after one more", len(d.Services()), 3)
		expect(t, "changes: the failed one waits", d.Calls().Changes, 4)

		d.Break()
		pass(51 * time.Millisecond)
		synctest.Wait()
		expect(t, "services after the repair", len(d.Services()), 4)
	})
}

func TestBackoffDoublesUpToOneMinute(t *testing.T) {
	run(t, loop.Options{ResyncPeriod: 24 * time.Hour}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Break(key(0))
		r.Set(topology("physnet"), many(1, 80), nil)
		pass(time.Second)
		synctest.Wait()
		// Attempts at 0, 50, 150, 350 and 750 ms.
		expect(t, "attempts in the first second", d.Calls().Changes, 5)
		pass(10 * time.Minute)
		synctest.Wait()
		before := d.Calls().Changes
		pass(10 * time.Minute)
		synctest.Wait()
		expect(t, "attempts in ten minutes later on", d.Calls().Changes-before, 10)
		r.Set(topology("physnet"), many(1, 81), nil)
		synctest.Wait()
		expect(t, "attempts once the plan is another", d.Calls().Changes-before, 11)
	})
}

func TestFailedRemovalIsRetried(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(1, 80), nil)
		synctest.Wait()
		d.Break(key(0))
		r.Set(topology("physnet"), plans{}, nil)
		synctest.Wait()
		expect(t, "services", len(d.Services()), 1)
		d.Break()
		pass(time.Second)
		synctest.Wait()
		expect(t, "services after the repair", len(d.Services()), 0)
	})
}

func TestResyncRepeatsEverything(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(5, 80), nil)
		synctest.Wait()
		d.Break(key(0))
		r.Resync()
		synctest.Wait()
		expect(t, "calls", d.Calls(), recording.Calls{Configure: 2, Apply: 2, Prune: 2, Changes: 10})
		pass(time.Second)
		d.Break()
		r.Resync()
		synctest.Wait()
		expect(t, "services", len(d.Services()), 5)
		pass(time.Hour)
		synctest.Wait()
		expect(t, "pruned again after an hour", d.Calls().Prune, 4)
		expect(t, "and configured", d.Calls().Configure, 4)
	})
}

func TestResultsAreReported(t *testing.T) {
	got := map[world.Key]loop.Result{}
	o := loop.Options{Report: func(results []loop.Result) {
		for _, r := range results {
			got[r.Key] = r
		}
	}}
	run(t, o, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Break(key(0))
		want := many(2, 80)
		r.Set(topology("physnet"), want, nil)
		synctest.Wait()
		expect(t, "failed", got[key(0)].Err != nil, true)
		expect(t, "done", got[key(1)], loop.Result{Key: key(1), Plan: want[key(1)]})

		expect(t, "recorded", len(r.Results()), 2)
		expect(t, "recorded as failed", r.Result(key(0)).Err != nil, true)
		expect(t, "recorded as done", *r.Result(key(1)), got[key(1)])
		r.Change(plans{key(1): nil})
		synctest.Wait()
		expect(t, "the result of a removed Service", r.Result(key(1)), nil)
	})
}

// A result of an Apply that began before SetAnew does not count.
func TestForgottenResultsDoNotCount(t *testing.T) {
	want := many(3, 80)
	runApplying(t, loop.Options{Batch: 2}, func(t *testing.T, d *applying, r *loop.Runner) {
		d.during = func() {
			d.during = nil
			r.SetAnew(topology("physnet"), want, nil, keysOf(want))
			expect(t, "results at once", len(r.Results()), 0)
		}
		r.Set(topology("physnet"), want, nil)
		synctest.Wait()
		expect(t, "results", len(r.Results()), 3)
		expect(t, "calls", d.Calls(), recording.Calls{Configure: 2, Apply: 3, Prune: 1, Changes: 6})

		// A repetition is made in batches. A result counts once its plan was applied again.
		d.during = func() {
			d.during = func() { expect(t, "results after the first batch", len(r.Results()), 2) }
		}
		r.SetAnew(topology("physnet"), want, nil, keysOf(want))
		synctest.Wait()
		expect(t, "calls with batches", d.Calls(), recording.Calls{Configure: 3, Apply: 5, Prune: 2, Changes: 9})
		d.during = nil

		d.Break(key(0))
		r.SetAnew(topology("physnet"), want, nil, keysOf(want))
		synctest.Wait()
		expect(t, "failed", r.Result(key(0)).Err != nil, true)
		expect(t, "changes", d.Calls().Changes, 12)
	})
}

// Plans whose rows did not change are not applied again.
func TestOnlyOutdatedPlansAreAppliedAgain(t *testing.T) {
	want := many(3, 80)
	runApplying(t, loop.Options{}, func(t *testing.T, d *applying, r *loop.Runner) {
		r.Set(topology("physnet"), want, nil)
		synctest.Wait()
		before := d.Calls().Changes
		d.during = func() {
			expect(t, "results until then", len(r.Results()), 2)
			expect(t, "the result of the outdated plan", r.Result(key(1)), nil)
		}
		r.SetAnew(topology("physnet"), want, nil, keysOf(plans{key(1): nil, key(9): nil}))
		synctest.Wait()
		expect(t, "changes", d.Calls().Changes, before+1)
		expect(t, "results", len(r.Results()), 3)
	})
}

func keysOf(of plans) map[world.Key]struct{} {
	out := map[world.Key]struct{}{}
	for k := range of {
		out[k] = struct{}{}
	}
	return out
}

// applying calls a function during Apply.
type applying struct {
	recording.Dataplane
	during func()
}

func (a *applying) Apply(ctx context.Context, changes []dataplane.Change) map[world.Key]error {
	if a.during != nil {
		a.during()
	}
	return a.Dataplane.Apply(ctx, changes)
}

func TestChangeAppliesOnlyThatService(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Change(plans{key(7): service(7, 80)})
		synctest.Wait()
		expect(t, "calls before anything whole was wanted", d.Calls(), recording.Calls{})
		wanted := many(5, 80)
		r.Set(topology("physnet"), wanted, nil)
		synctest.Wait()
		before := d.Calls()

		wanted[key(9)] = service(9, 80) // the caller owns the map
		r.Change(plans{key(0): service(0, 81), key(1): nil, key(5): service(5, 80), key(2): service(2, 80)})
		synctest.Wait()
		expect(t, "batches", d.Calls().Apply-before.Apply, 1)
		expect(t, "changes", d.Calls().Changes-before.Changes, 3)
		services := d.Services()
		expect(t, "services", len(services), 5)
		expect(t, "port of the first", services[key(0)].Listeners[0].Port, 81)
		expect(t, "the second is there", services[key(1)] != nil, false)

		// A whole state replaces earlier changes.
		r.Set(topology("physnet"), many(5, 80), nil)
		synctest.Wait()
		services = d.Services()
		expect(t, "services", len(services), 5)
		expect(t, "port of the first", services[key(0)].Listeners[0].Port, 80)
	})
}
