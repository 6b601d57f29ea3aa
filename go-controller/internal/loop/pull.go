// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"maps"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// pull takes the newest desired state, and determines how it differs from what the dataplane has. r.mu must be held.
func (r *Runner) pull() {
	first, resync, forget := !r.started, r.resync, r.forget
	r.started, r.resync, r.forget = true, false, map[world.Key]struct{}{}
	maps.Copy(r.forgotten, forget)
	// There are no results of unknown Services, so Prune removes those that are gone.
	r.pruneDue, r.unknownGone = r.pruneDue || r.unknownGone, false
	if r.newest != nil {
		r.want, r.newest = r.newest, nil
		r.forgetUnknown()
		r.compare()
	}
	for k := range r.changed {
		r.markDirty(k)
	}
	clear(r.changed)
	now := time.Now()
	if first || resync || !now.Before(r.nextResync) {
		r.markAllStale(now)
	} else if len(forget) > 0 {
		r.markStale(forget, now)
	}
	for k := range r.repeat {
		if r.want.plans[k] != nil {
			r.stale[k] = struct{}{}
		}
		if retry, failed := r.retries[k]; failed {
			retry.at = now
			r.retries[k] = retry
		}
	}
	clear(r.repeat)
	for k, retry := range r.retries {
		if !now.Before(retry.at) {
			r.dirty[k] = struct{}{}
		}
	}
	r.markPostponedDirty(now)
}

func (r *Runner) compare() {
	clear(r.dirty)
	for k := range r.want.plans {
		r.markDirty(k)
	}
	for k := range r.results {
		r.markDirty(k)
	}
}

// markDirty records whether the plan of a Service must be applied. A plan that has failed waits for its retry. A
// different plan is tried now.
func (r *Runner) markDirty(k world.Key) {
	if plan.Equal(r.results[k].Plan, r.want.plans[k]) {
		delete(r.dirty, k)
	} else {
		r.dirty[k] = struct{}{}
	}
}

// markAllStale marks everything to be applied again at once.
func (r *Runner) markAllStale(now time.Time) {
	r.nextResync = now.Add(r.options.ResyncPeriod)
	all := make(map[world.Key]struct{}, len(r.want.plans))
	for k := range r.want.plans {
		all[k] = struct{}{}
	}
	r.markStale(all, now)
}

// markStale marks plans, with the topology and the removal of other rows, to be applied again at once.
func (r *Runner) markStale(keys map[world.Key]struct{}, now time.Time) {
	r.topologyStale, r.topologyRetry = true, retry{}
	r.pruneDue, r.pruneRetry = true, retry{}
	for k := range keys {
		if r.want.plans[k] != nil {
			r.stale[k] = struct{}{}
		}
	}
	r.retryNow(now)
}

// retryNow ends the retry delays of all failed keys.
func (r *Runner) retryNow(now time.Time) {
	for k, retry := range r.retries {
		retry.at = now
		r.retries[k] = retry
		r.dirty[k] = struct{}{}
	}
}
