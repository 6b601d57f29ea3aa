// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"
	"testing/synctest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/recording"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// While a tenant changes Services again and again, lost rows of others are written again, and rows of Services that do
// not exist are removed.
func TestChangesDelayRepetitionsAndPruneByFewBatches(t *testing.T) {
	other, gone := world.Key{Namespace: "other", Name: "web"}, world.Key{Namespace: "other", Name: "gone"}
	for name, o := range map[string]loop.Options{
		"all changes together":  {Batch: 20},
		"changes in parts":      {Batch: 20, NamespaceBatch: 20},
		"repetitions of one":    {Batch: 1},
		"more changes of a few": {Batch: 20, NamespaceBatch: 5},
	} {
		t.Run(name, func(t *testing.T) {
			runApplying(t, o, func(t *testing.T, d *applying, r *loop.Runner) {
				all := many(40, 80)
				all[other] = service(9999, 80)
				r.Set(topology("physnet"), all, nil)
				synctest.Wait()
				before := d.Calls()
				since := func() recording.Calls {
					c := d.Calls()
					return recording.Calls{Apply: c.Apply - before.Apply, Prune: c.Prune - before.Prune}
				}
				repaired, pruned := 0, 0
				d.during = func() {
					c := since()
					if repaired == 0 && d.Services()[other].Listeners[0].Port == 80 {
						repaired = c.Apply
					}
					if pruned == 0 && c.Prune > 0 {
						pruned = c.Apply
					}
					if c.Apply < 200 {
						r.Change(many(40, uint16(1000+c.Apply)))
					}
				}
				d.Put(other, service(9999, 99))
				d.Put(gone, service(9998, 99))
				r.Resync()
				r.Change(many(40, 81))
				synctest.Wait()
				if repaired == 0 || repaired > 45 {
					t.Errorf("the rows of another tenant are back after %d of %d batches", repaired, since().Apply)
				}
				if pruned == 0 || pruned > 51 || d.Services()[gone] != nil {
					t.Errorf("pruned after %d of %d batches", pruned, since().Apply)
				}
				expectPort(t, "the newest plan", &d.Dataplane, key(7), 1199)
			})
		})
	}
}
