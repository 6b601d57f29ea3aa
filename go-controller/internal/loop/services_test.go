// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Services whose rows can't be written by Configure or Prune are applied again, and their results have the error. The
// topology has none, unless something else has failed, too.
func TestServicesErrorIsNoneOfTheTopology(t *testing.T) {
	for name, fail := range map[string]func(*recording.Dataplane, error){
		"Configure": func(d *recording.Dataplane, err error) { d.FailConfigure(func() error { return err }) },
		"Prune":     func(d *recording.Dataplane, err error) { d.FailPrune(err) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
				kept, gone := key(98), key(99)
				r.Set(topology("physnet"), many(2, 80), unknown(kept))
				synctest.Wait()
				before := d.Calls()
				services := dataplane.ServicesError{Services: map[world.Key]bool{key(0): true, kept: true, gone: true}}
				again := func(other error, wantErr string) {
					t.Helper()
					services.Other = other
					d.Break(key(0))
					fail(d, fmt.Errorf("wrapped: %w", services))
					r.Resync()
					synctest.Wait()
					configured, err := r.TopologyResult()
					expect(t, "topology", fmt.Sprint(configured, err), "true "+wantErr)
					expect(t, "the Service has failed", r.Result(key(0)).Err != nil, true)
					expect(t, "the other one has not", r.Result(key(1)).Err == nil, true)
				}
				again(nil, "<nil>")
				d.Break()
				pass(time.Minute)
				synctest.Wait()
				expect(t, "repaired", r.Result(key(0)).Err == nil, true)
				got := d.Calls()
				expect(t, "attempts to configure", got.Configure-before.Configure, 1)
				expect(t, "attempts to prune", got.Prune-before.Prune, 1)
				again(errors.New("no such chassis"), "no such chassis")
				fail(d, nil)
				pass(time.Minute)
				_, err := r.TopologyResult()
				expect(t, "topology at last", fmt.Sprint(err), "<nil>")
			})
		})
	}
}

// Services whose plans are as before are applied again if another topology can't be written for them.
func TestServicesOfAnotherTopologyAreAppliedAgain(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		r.Set(topology("physnet"), many(3, 80), nil)
		synctest.Wait()
		before := d.Calls()
		d.FailConfigure(func() error {
			return dataplane.ServicesError{Services: map[world.Key]bool{key(0): true}}
		})
		r.Set(topology("other"), many(3, 80), nil)
		synctest.Wait()
		got := d.Calls()
		expect(t, "changes", got.Changes-before.Changes, 1)
		expect(t, "attempts to configure", got.Configure-before.Configure, 1)
	})
}

// A dataplane that has another result for Services has them applied again at once, also those that have failed often.
func TestRepeatedServicesDoNotWaitForTheirRetry(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		d.Break(key(0))
		r.Set(topology("physnet"), many(3, 80), nil)
		pass(10 * time.Minute)
		d.Break()
		before := d.Calls()
		r.Repeat([]world.Key{key(0), key(1), key(99)})
		synctest.Wait()
		expect(t, "repaired", r.Result(key(0)).Err == nil, true)
		expect(t, "changes", d.Calls().Changes-before.Changes, 2)
	})
}
