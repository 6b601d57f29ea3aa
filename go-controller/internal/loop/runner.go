// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Result is the outcome of the newest attempt to apply a Service.
type Result struct {
	Key world.Key
	// Plan is the plan that was applied, nil for a removal.
	Plan *plan.Service
	Err  error
}

// Options of a Runner.
type Options struct {
	// Report is called with the results of each batch, from the runner's goroutine. It must not block. It may be nil.
	Report func([]Result)
	// ReportTopology is called with the result of the last Configure or Prune (nil: success). It may be nil.
	ReportTopology func(error)
	// Alive is called before each unit of work, and every few seconds while the runner is idle. It may be nil.
	Alive func()
	// Batch is the maximum number of repetitions in one Apply, so that changes need not wait for all of them; 0 means
	// 200. All pending changes are applied together: Services share much of what a dataplane has to examine.
	Batch int
	// ResyncPeriod is the time between two repetitions of everything; 0 means an hour.
	ResyncPeriod time.Duration
}

// aliveEvery is the time between two calls of Alive while the runner is idle.
const aliveEvery = 5 * time.Second

// Runner applies the newest plans to a dataplane. Set, Change and Resync may be called from any goroutine.
type Runner struct {
	dataplane dataplane.Dataplane
	options   Options

	mu     sync.Mutex
	newest *desired
	// changed are the plans that differ from those in newest or, if that is nil, in want.
	changed map[world.Key]*plan.Service
	resync  bool
	wake    chan struct{}

	// The following fields belong to Run's goroutine.
	want    *desired
	applied map[world.Key]*plan.Service // accepted by the dataplane
	dirty   map[world.Key]struct{}      // want differs from applied
	stale   map[world.Key]struct{}      // to be repeated
	retries map[world.Key]retry         // failed; the state in the dataplane is unknown

	topology      *plan.Topology // accepted by the dataplane
	topologyRetry retry
	topologyStale bool
	topologyError error // of the last Configure
	pruneDue      bool
	pruneRetry    retry
	nextResync    time.Time
}

// desired is one whole state that the dataplane must reach.
type desired struct {
	topology *plan.Topology
	plans    map[world.Key]*plan.Service
}

// New returns a Runner that does nothing until Run is called.
func New(d dataplane.Dataplane, o Options) *Runner {
	o.Batch = cmp.Or(o.Batch, 200)
	o.ResyncPeriod = cmp.Or(o.ResyncPeriod, time.Hour)
	if o.Report == nil {
		o.Report = func([]Result) {}
	}
	if o.ReportTopology == nil {
		o.ReportTopology = func(error) {}
	}
	if o.Alive == nil {
		o.Alive = func() {}
	}
	return &Runner{
		dataplane: d,
		options:   o,
		changed:   map[world.Key]*plan.Service{},
		wake:      make(chan struct{}, 1),
		applied:   map[world.Key]*plan.Service{},
		dirty:     map[world.Key]struct{}{},
		stale:     map[world.Key]struct{}{},
		retries:   map[world.Key]retry{},
	}
}

// Set replaces the whole desired state: a Service that is not in plans is removed. The caller must not modify the
// plans afterwards, but may modify the map.
func (r *Runner) Set(topology *plan.Topology, plans map[world.Key]*plan.Service) {
	plans = maps.Clone(plans)
	r.mu.Lock()
	r.newest = &desired{topology, plans}
	clear(r.changed)
	r.mu.Unlock()
	r.signal()
}

// Change replaces the plan of one Service in the desired state. A nil plan removes the Service.
func (r *Runner) Change(key world.Key, p *plan.Service) {
	r.mu.Lock()
	r.changed[key] = p
	r.mu.Unlock()
	r.signal()
}

// Resync applies everything again and prunes: after a reconnect, or when the dataplane's rows have drifted.
func (r *Runner) Resync() {
	r.mu.Lock()
	r.resync = true
	r.mu.Unlock()
	r.signal()
}

func (r *Runner) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run applies plans until the context is done.
func (r *Runner) Run(ctx context.Context) {
	timer := time.NewTimer(r.options.ResyncPeriod)
	defer timer.Stop()
	for ctx.Err() == nil {
		r.options.Alive()
		r.pull()
		if r.want != nil && r.step(ctx) {
			continue
		}
		timer.Reset(min(time.Until(r.nextWakeup()), aliveEvery))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// pull adopts the newest desired state and determines how it differs from what the dataplane has.
func (r *Runner) pull() {
	r.mu.Lock()
	newest, changed, resync := r.newest, r.changed, r.resync
	r.newest, r.resync = nil, false
	if newest != nil || r.want != nil {
		r.changed = map[world.Key]*plan.Service{}
	}
	r.mu.Unlock()

	first := r.want == nil && newest != nil
	if newest != nil {
		r.want = newest
		r.compare()
	}
	if r.want == nil {
		return
	}
	for k, p := range changed {
		if p == nil {
			delete(r.want.plans, k)
		} else {
			r.want.plans[k] = p
		}
		r.markDirty(k)
	}
	now := time.Now()
	if first || resync || !now.Before(r.nextResync) {
		r.markAllStale(now)
	}
	for k, retry := range r.retries {
		if !now.Before(retry.at) {
			r.dirty[k] = struct{}{}
		}
	}
}

func (r *Runner) compare() {
	clear(r.dirty)
	for k := range r.want.plans {
		r.markDirty(k)
	}
	for k := range r.applied {
		r.markDirty(k)
	}
	for k := range r.retries {
		r.markDirty(k)
	}
}

// markDirty records whether the plan of a Service must be applied.
func (r *Runner) markDirty(k world.Key) {
	last, has := r.applied[k], r.want.plans[k]
	if retry, failed := r.retries[k]; failed {
		// The same plan waits for its retry. A different plan is tried now.
		last = retry.plan
	}
	if Equal(last, has) {
		delete(r.dirty, k)
	} else {
		r.dirty[k] = struct{}{}
	}
}

// markAllStale marks everything to be applied again at once.
func (r *Runner) markAllStale(now time.Time) {
	r.nextResync = now.Add(r.options.ResyncPeriod)
	r.topologyStale, r.topologyRetry = true, retry{}
	r.pruneDue, r.pruneRetry = true, retry{}
	for k := range r.want.plans {
		r.stale[k] = struct{}{}
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

// step does one unit of work and reports whether there was any.
func (r *Runner) step(ctx context.Context) bool {
	now := time.Now()
	if due := !now.Before(r.topologyRetry.at); r.topologyStale && due || (due || r.partiallyFailed()) &&
		!equalTopologies(r.topology, r.want.topology) {
		r.configure(ctx)
		return true
	}
	if batch := r.batch(); len(batch) > 0 {
		r.apply(ctx, batch)
		return true
	}
	if r.pruneDue && !now.Before(r.pruneRetry.at) {
		r.prune(ctx)
		return true
	}
	return false
}

func (r *Runner) configure(ctx context.Context) {
	topology := r.want.topology
	err := r.dataplane.Configure(ctx, topology)
	if ctx.Err() != nil {
		return
	}
	r.topologyError = err
	r.options.ReportTopology(err)
	if err != nil {
		r.topologyStale = true
		r.topologyRetry = r.topologyRetry.next(nil)
		if r.partiallyFailed() {
			r.topology = topology
		}
		return
	}
	if r.topologyRetry.failures > 0 {
		// Keys may have failed because the topology was missing.
		r.retryNow(time.Now())
	}
	r.topology, r.topologyStale, r.topologyRetry = topology, false, retry{}
}

// partiallyFailed reports whether the last Configure failed for some shards only. Another topology does not wait for
// their next retry.
func (r *Runner) partiallyFailed() bool {
	return errors.As(r.topologyError, new(dataplane.ShardsError))
}

// batch returns all changes, plus repetitions up to the batch size.
func (r *Runner) batch() []dataplane.Change {
	var batch []dataplane.Change
	pick := func(k world.Key) {
		delete(r.dirty, k)
		delete(r.stale, k)
		if last, failed := r.retries[k]; failed && time.Now().Before(last.at) && Equal(last.plan, r.want.plans[k]) {
			return
		}
		batch = append(batch, dataplane.Change{Key: k, Want: r.want.plans[k]})
	}
	for k := range r.dirty {
		pick(k)
	}
	for k := range r.stale {
		if len(batch) >= r.options.Batch {
			break
		}
		pick(k)
	}
	slices.SortFunc(batch, func(a, b dataplane.Change) int { return a.Key.Compare(b.Key) })
	return batch
}

func (r *Runner) apply(ctx context.Context, batch []dataplane.Change) {
	failed := r.dataplane.Apply(ctx, batch)
	if ctx.Err() != nil {
		return
	}
	results := make([]Result, 0, len(batch))
	for _, c := range batch {
		err := failed[c.Key]
		results = append(results, Result{c.Key, c.Want, err})
		switch {
		case err != nil:
			delete(r.applied, c.Key)
			r.retries[c.Key] = r.retries[c.Key].next(c.Want)
		case c.Want == nil:
			delete(r.applied, c.Key)
			delete(r.retries, c.Key)
		default:
			r.applied[c.Key] = c.Want
			delete(r.retries, c.Key)
		}
	}
	r.options.Report(results)
}

func (r *Runner) prune(ctx context.Context) {
	want := r.want.plans
	err := r.dataplane.Prune(ctx, func(k world.Key) bool { return want[k] != nil })
	if err != nil && ctx.Err() == nil {
		r.options.ReportTopology(err)
		r.pruneRetry = r.pruneRetry.next(nil)
		return
	}
	if r.pruneRetry.failures > 0 {
		r.options.ReportTopology(r.topologyError)
	}
	r.pruneDue, r.pruneRetry = false, retry{}
}

// nextWakeup returns when there will be work to do if nothing else happens.
func (r *Runner) nextWakeup() time.Time {
	now := time.Now()
	if r.want == nil {
		return now.Add(r.options.ResyncPeriod)
	}
	next := r.nextResync
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, retry := range r.retries {
		earlier(retry.at)
	}
	if r.topologyRetry.failures > 0 {
		earlier(r.topologyRetry.at)
	}
	if r.pruneDue {
		earlier(r.pruneRetry.at)
	}
	return next
}
