// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Result is the outcome of the newest attempt to apply a Service.
type Result struct {
	Key world.Key
	// Plan is the plan that was tried, nil for a removal.
	Plan *plan.Service
	// Err is nil if the dataplane has accepted the plan. Otherwise, its state is unknown.
	Err error
	// Pending is since when the dataplane has accepted changes that have not taken effect yet, the zero time if it has
	// none.
	Pending time.Time
	// Postponed is set if the dataplane makes a newer change later, in several seconds. Plan and Err, if any, are still
	// those of the change before.
	Postponed bool
}

// Results returns a copy of the newest results, without those of Services that were removed.
func (r *Runner) Results() map[world.Key]Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	results := maps.Clone(r.results)
	for _, forgotten := range []map[world.Key]struct{}{r.forget, r.forgotten} {
		for k := range forgotten {
			delete(results, k)
		}
	}
	for k, result := range results {
		if since := r.dataplane.Pending(k); !since.IsZero() {
			result.Pending = since
			results[k] = result
		}
	}
	for k, p := range r.postponed {
		if p.noticeable {
			result := results[k]
			result.Key, result.Postponed = k, true
			results[k] = result
		}
	}
	return results
}

// Result returns the newest result of a Service, or nil if there is none or the Service was removed.
func (r *Runner) Result(key world.Key) *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, ok := r.results[key]
	_, forget := r.forget[key]
	_, forgotten := r.forgotten[key]
	postponed := r.postponed[key].noticeable
	switch {
	case ok && !forget && !forgotten:
		result.Pending, result.Postponed = r.dataplane.Pending(key), postponed
		return &result
	case postponed:
		return &Result{Key: key, Postponed: true}
	}
	return nil
}

// TopologyResult returns false before the first attempt to configure the topology, and the error of the newest one or,
// if it succeeded, of the last Prune.
func (r *Runner) TopologyResult() (configured bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.configured, r.topologyResult
}

// record records the newest results.
func (r *Runner) record(results []Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range results {
		k, last := result.Key, r.results[result.Key]
		if result.Postponed {
			continue
		}
		delete(r.postponed, k)
		delete(r.forgotten, k)
		if result.Err == nil {
			delete(r.retries, k)
		} else {
			if !plan.Equal(last.Plan, result.Plan) {
				delete(r.retries, k) // a different plan starts at the first delay again
			}
			r.retries[k] = r.retries[k].next()
			// Log an error once, not for each retry.
			if last.Err == nil || last.Err.Error() != result.Err.Error() {
				klog.ErrorS(result.Err, "Failed to apply Service, will retry", "service", k.String())
			}
		}
		if result.Plan == nil && result.Err == nil {
			delete(r.results, k)
		} else {
			r.results[k] = result
		}
	}
}

// forgetUnknown drops what is recorded of Services that stay as the dataplane has them: nothing is repeated, and their
// next plan is applied even if it equals the last one. r.mu must be held.
func (r *Runner) forgetUnknown() {
	for k := range r.want.unknown {
		delete(r.results, k)
		delete(r.postponed, k)
		delete(r.forgotten, k)
		delete(r.retries, k)
		delete(r.stale, k)
	}
}

// recordTopology records what TopologyResult returns.
func (r *Runner) recordTopology() {
	err := cmp.Or(r.topologyError, r.pruneError)
	r.mu.Lock()
	changed := !r.configured || fmt.Sprint(r.topologyResult) != fmt.Sprint(err)
	r.configured, r.topologyResult = true, err
	r.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		klog.ErrorS(err, "Failed to configure topology, will retry")
	}
	r.options.ReportTopology()
}
