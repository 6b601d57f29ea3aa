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
)

func TestFailingTopologyDoesNotBlockServices(t *testing.T) {
	reports := 0
	o := loop.Options{ReportTopology: func() { reports++ }}
	run(t, o, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		result := func(reported int, configured bool, message string) {
			t.Helper()
			got, err := r.TopologyResult()
			expect(t, "reports", reports, reported)
			expect(t, "configured", got, configured)
			expect(t, "error", fmt.Sprint(err), message)
		}
		result(0, false, "<nil>")
		d.FailConfigure(func() error { return errors.New("no such chassis") })
		r.Set(topology("physnet"), many(2, 80), nil)
		synctest.Wait()
		expect(t, "services", len(d.Services()), 2)
		pass(time.Second)
		result(1, true, "no such chassis")
		d.FailConfigure(nil)
		pass(time.Second)
		synctest.Wait()
		expect(t, "configured", d.Topology() != nil, true)
		result(2, true, "<nil>")
	})
}

// A Prune that fails is an error until it succeeds, whatever Configure does meanwhile.
func TestFailingPruneIsReportedUntilItSucceeds(t *testing.T) {
	run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
		result := func(want string) {
			t.Helper()
			synctest.Wait()
			_, err := r.TopologyResult()
			expect(t, "topology result", fmt.Sprint(err), want)
		}
		d.FailPrune(errors.New("no prune"))
		r.Set(topology("physnet"), many(1, 80), nil)
		result("no prune")
		r.Set(topology("other"), many(1, 80), nil)
		result("no prune")
		d.FailConfigure(func() error { return errors.New("no topology") })
		r.Set(topology("physnet"), many(1, 80), nil)
		result("no topology")
		d.FailConfigure(nil)
		r.Resync()
		result("no prune")
		d.FailPrune(nil)
		r.Resync()
		result("<nil>")
	})
}

// A topology that could not be configured is retried after a delay, which doubles. Another one does not wait for it,
// and starts at the first delay again.
func TestFailedTopologyDelaysNoOther(t *testing.T) {
	for name, err := range map[string]error{
		"as a whole":  errors.New("no such chassis"),
		"some shards": dataplane.ShardsError{{Domain: "lan", Index: 9}: "no number is free"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, loop.Options{ResyncPeriod: 24 * time.Hour}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
				d.Break(key(0))
				d.FailConfigure(func() error { return err })
				var before int
				attempts := func(what string, want int) {
					t.Helper()
					synctest.Wait()
					now := d.Calls().Configure
					expect(t, what, now-before, want)
					before = now
				}
				r.Set(topology("physnet"), many(1, 80), nil)
				attempts("the first time", 1)
				r.Set(topology("physnet"), many(1, 80), nil)
				attempts("the same again", 0)
				pass(10 * time.Minute)
				synctest.Wait()
				before = d.Calls().Configure
				pass(10 * time.Minute)
				attempts("in ten minutes later on", 10)
				r.Set(topology("other"), many(1, 80), nil)
				attempts("another topology", 1)
				pass(51 * time.Millisecond)
				attempts("after the first delay", 1)
				pass(10 * time.Minute)
				synctest.Wait()
				before = d.Calls().Configure
				r.Set(topology("physnet"), many(1, 80), nil)
				attempts("the former one", 1)

				// Services that may have failed because of the topology do not wait for their retries.
				d.Break()
				d.FailConfigure(nil)
				r.Set(topology("third"), many(1, 80), nil)
				attempts("a third one", 1)
				expect(t, "configured", d.Topology() != nil, true)
				expect(t, "services", len(d.Services()), 1)
				pass(10 * time.Minute)
				attempts("once it is configured", 0)
			})
		})
	}
}
