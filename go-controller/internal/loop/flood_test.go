// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
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

// While the topology changes again and again, for example because a node rewrites its annotations, changed Services are
// applied, and rows of Services that do not exist are removed. Plans are applied with the topology they belong to.
func TestChangesOfTheTopologyDelayServicesAndPruneByFewOfThem(t *testing.T) {
	runApplying(t, loop.Options{}, func(t *testing.T, d *applying, r *loop.Runner) {
		r.Set(topology("1000"), many(3, 1000), nil)
		synctest.Wait()
		before := d.Calls()
		configured, applied, pruned := 0, 0, 0
		d.FailConfigure(func() error {
			if configured++; configured < 200 {
				port := uint16(1000 + configured)
				r.Set(topology(fmt.Sprint(port)), many(3, port), nil)
				r.Change(plans{key(0): service(0, port)})
			}
			return nil
		})
		var network string
		d.during = func() {
			network = d.Topology().Domains[0].PhysicalNetwork
			if pruned == 0 && d.Calls().Prune > before.Prune {
				pruned = configured
			}
		}
		d.OnApply(func(part []dataplane.Change) {
			if applied == 0 {
				applied = configured
			}
			for _, c := range part {
				expect(t, "network of "+c.Key.Name, network, fmt.Sprint(c.Want.Listeners[0].Port))
			}
		})
		r.Resync()
		synctest.Wait()
		if applied == 0 || applied > 2 {
			t.Errorf("Services were applied after %d topologies", applied)
		}
		if pruned == 0 || pruned > 52 {
			t.Errorf("pruned after %d topologies", pruned)
		}
		expectPort(t, "the newest plan", &d.Dataplane, key(2), 1199)
	})
}

// Services wait for one more topology if it has another order of gateways, and for no other.
func TestOrderOfGatewaysPrecedesServices(t *testing.T) {
	shard := func(network string, gateways ...string) *plan.Topology {
		f := topology(network)
		f.Domains[0].Shards = []plan.Shard{{ID: world.ShardID{Domain: "rack"}}}
		for _, node := range gateways {
			f.Domains[0].Shards[0].Gateways = append(f.Domains[0].Shards[0].Gateways, plan.Gateway{Node: node})
		}
		return f
	}
	handover, another := shard("b", "n1", "n2"), shard("b", "n1", "n2")
	handover.Domains[0].Shards[0].Handover = world.HandoverClaimed
	another.Domains[0].Shards = append(another.Domains[0].Shards, plan.Shard{ID: world.ShardID{Domain: "rack", Index: 1}})
	for name, c := range map[string]struct {
		next *plan.Topology
		want string
	}{
		"another order":     {shard("b", "n2", "n1"), "configure configure apply"},
		"the same order":    {shard("c", "n1", "n2"), "configure apply configure apply"},
		"a handover":        {handover, "configure configure apply"},
		"withdrawn":         {&plan.Topology{}, "configure configure apply"},
		"another shard":     {another, "configure apply configure apply"},
		"the same topology": {shard("b", "n1", "n2"), "configure apply"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, loop.Options{}, func(t *testing.T, d *recording.Dataplane, r *loop.Runner) {
				r.Set(shard("a", "n1", "n2"), many(1, 80), nil)
				synctest.Wait()
				var got []string
				d.FailConfigure(func() error {
					if len(got) == 0 {
						r.Set(c.next, many(1, 82), nil)
					}
					got = append(got, "configure")
					return nil
				})
				d.OnApply(func([]dataplane.Change) { got = append(got, "apply") })
				r.Set(shard("b", "n1", "n2"), many(1, 81), nil)
				synctest.Wait()
				expect(t, "calls", strings.Join(got, " "), c.want)
				expectPort(t, "the newest plan", d, key(0), 82)
			})
		})
	}
}
