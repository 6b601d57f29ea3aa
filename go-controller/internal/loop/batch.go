// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// batch returns all changes, or as many of each namespace as NamespaceBatch allows, plus repetitions up to the batch
// size, or at least a quarter of it.
func (r *Runner) batch() []dataplane.Change {
	var batch []dataplane.Change
	most, picked := cmp.Or(r.options.NamespaceBatch, math.MaxInt), map[string]int{}
	pick := func(k world.Key) bool {
		delete(r.dirty, k)
		delete(r.stale, k)
		if r.waits(k) || time.Now().Before(r.retries[k].at) && plan.Equal(r.results[k].Plan, r.want.plans[k]) {
			return false
		}
		batch = append(batch, dataplane.Change{Key: k, Want: r.want.plans[k]})
		return true
	}
	for k := range r.dirty {
		if picked[k.Namespace] < most && pick(k) {
			picked[k.Namespace]++
		}
	}
	for _, k := range r.previousHolders(batch) {
		pick(k)
	}
	size := max(r.options.Batch, len(batch)+(r.options.Batch+3)/4)
	for k := range r.stale {
		if len(batch) >= size {
			break
		}
		if _, changed := r.dirty[k]; !changed {
			pick(k)
		}
	}
	slices.SortFunc(batch, func(a, b dataplane.Change) int { return a.Key.Compare(b.Key) })
	return batch
}

// previousHolders returns the changed Services that are not in a batch, and that have an address in the dataplane which
// a Service gets by it: the dataplane takes it from them first.
func (r *Runner) previousHolders(batch []dataplane.Change) []world.Key {
	if len(r.dirty) == 0 {
		return nil
	}
	gets := map[netip.Addr]bool{}
	for _, c := range batch {
		if c.Want == nil || r.results[c.Key].Plan != nil && slices.Equal(c.Want.VIPs, r.results[c.Key].Plan.VIPs) {
			continue
		}
		for _, v := range c.Want.VIPs {
			gets[v.Addr] = true
		}
	}
	if len(gets) == 0 {
		return nil
	}
	var keys []world.Key
	for k := range r.dirty {
		p := r.results[k].Plan
		if p != nil && slices.ContainsFunc(p.VIPs, func(v plan.VIP) bool { return gets[v.Addr] }) {
			keys = append(keys, k)
		}
	}
	return keys
}
