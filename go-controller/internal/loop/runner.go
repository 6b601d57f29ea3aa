// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Options of a Runner.
type Options struct {
	// Report is called with the results of each batch, from the runner's goroutine. It must not block. It may be nil.
	Report func([]Result)
	// ReportTopology is called when TopologyResult has changed, from the runner's goroutine. It must not block. It may
	// be nil.
	ReportTopology func()
	// Alive is called before each unit of work, and every BeatInterval while the runner is idle. It may be nil.
	Alive func()
	// Batch is the maximum number of repetitions in one Apply, so that changes need not wait for all of them; 0 means
	// 200. A quarter of it is theirs however many changes there are. All pending changes are applied together: Services
	// share much of what a dataplane has to examine.
	Batch int
	// NamespaceBatch is the maximum number of pending changes of one namespace in one Apply, for a dataplane whose work
	// grows with the number of changes; 0 means no maximum. The next changes of others wait for one such part at most.
	NamespaceBatch int
	// ResyncPeriod is the time between two repetitions of everything; 0 means an hour.
	ResyncPeriod time.Duration
}

// overtaking is how many batches precede a Prune that is due. There may always be another one: tenants change Services
// as often as they like.
const overtaking = 50

// Runner applies the newest plans to a dataplane. All methods except Run may be called from any goroutine.
type Runner struct {
	dataplane dataplane.Dataplane
	options   Options

	mu sync.Mutex
	// want is the desired state that Run works on, and newest the one of a Set that Run has not taken yet, or nil. Both
	// are nil before the first Set. changed are the Services whose plans Run has not seen yet, and unknownGone is set if
	// an unknown one was removed.
	want, newest *desired
	changed      map[world.Key]struct{}
	unknownGone  bool
	resync       bool
	// repeat are the Services to be applied again that Run has not seen yet.
	repeat map[world.Key]struct{}
	// The results of the plans in forgotten don't count until they were applied again. Run adds those in forget to it:
	// an Apply that is in progress began before.
	forget, forgotten map[world.Key]struct{}
	wake              chan struct{}
	// results holds the newest result of each Service that the dataplane may have, except unknown ones. Run's goroutine
	// alone modifies it, and reads it without the lock. No other record of what was accepted exists: the controller
	// takes a copy for the statuses of a pass, which must agree with each other while Run goes on.
	results map[world.Key]Result
	// postponed are the plans that the dataplane accepts later. Run's goroutine alone modifies it, too.
	postponed map[world.Key]postponed
	// configured and topologyResult are what TopologyResult returns.
	configured     bool
	topologyResult error

	// The following fields belong to Run's goroutine.
	started bool                   // Run has taken the first desired state
	dirty   map[world.Key]struct{} // want differs from the plan in results
	stale   map[world.Key]struct{} // to be repeated
	retries map[world.Key]retry    // failed

	topology      *plan.Topology // of the last Configure
	topologyRetry retry
	topologyStale bool
	topologyError error // of the last Configure
	inSuccession  int   // topologies configured since the last batch or Prune
	pruneDue      bool
	overtook      int   // batches since the last Prune while another one was due
	pruneError    error // of the last Prune
	pruneRetry    retry
	nextResync    time.Time
}

// New returns a Runner that does nothing until Run is called.
func New(d dataplane.Dataplane, o Options) *Runner {
	o.Batch = cmp.Or(o.Batch, 200)
	o.ResyncPeriod = cmp.Or(o.ResyncPeriod, time.Hour)
	if o.Report == nil {
		o.Report = func([]Result) {}
	}
	if o.ReportTopology == nil {
		o.ReportTopology = func() {}
	}
	if o.Alive == nil {
		o.Alive = func() {}
	}
	return &Runner{
		dataplane: d,
		options:   o,
		changed:   map[world.Key]struct{}{},
		repeat:    map[world.Key]struct{}{},
		wake:      make(chan struct{}, 1),
		forget:    map[world.Key]struct{}{},
		forgotten: map[world.Key]struct{}{},
		results:   map[world.Key]Result{},
		postponed: map[world.Key]postponed{},
		dirty:     map[world.Key]struct{}{},
		stale:     map[world.Key]struct{}{},
		retries:   map[world.Key]retry{},
	}
}

// Set replaces the whole desired state: a Service without a plan is removed, or stays as the dataplane has it if it is
// in unknown. The caller must not modify the plans afterwards, but may modify the maps.
func (r *Runner) Set(topology *plan.Topology, plans map[world.Key]*plan.Service, unknown map[world.Key]struct{}) {
	r.SetAnew(topology, plans, unknown, nil)
}

// SetAnew is Set for a state in which the rows that some plans need have changed, although the plans may not have:
// those in outdated are applied again, and their results don't count until then.
func (r *Runner) SetAnew(topology *plan.Topology, plans map[world.Key]*plan.Service, unknown,
	outdated map[world.Key]struct{}) {
	newest := newDesired(topology, plans, unknown)
	r.mu.Lock()
	last := r.latest()
	r.unknownGone = r.unknownGone || last != nil && last.losesUnknown(newest)
	r.newest = newest
	maps.Copy(r.forget, outdated)
	clear(r.changed)
	r.mu.Unlock()
	r.signal()
}

// Change replaces the plans of some Services in the desired state. A nil plan removes the Service. Before the first Set
// it does nothing.
func (r *Runner) Change(plans map[world.Key]*plan.Service) {
	if len(plans) == 0 {
		return // The controller calls it for each report, most of which change no plan.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := r.latest()
	if latest == nil {
		return
	}
	for k, p := range plans {
		r.unknownGone = latest.set(k, p) || r.unknownGone
		r.changed[k] = struct{}{}
	}
	r.signal()
}

// Resync applies everything again and prunes: after a reconnect, or when the dataplane's rows have drifted.
func (r *Runner) Resync() {
	r.mu.Lock()
	r.resync = true
	r.mu.Unlock()
	r.signal()
}

// Repeat applies Services again at once, also those that wait for a retry: the dataplane has another result for them.
func (r *Runner) Repeat(keys []world.Key) {
	r.mu.Lock()
	for _, k := range keys {
		r.repeat[k] = struct{}{}
	}
	r.mu.Unlock()
	r.signal()
}

// latest returns the newest desired state, nil before the first Set. r.mu must be held.
func (r *Runner) latest() *desired { return cmp.Or(r.newest, r.want) }

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
		work, wakeup := r.next()
		if work != nil {
			work(ctx)
			continue
		}
		timer.Reset(min(time.Until(wakeup), BeatInterval))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// next returns the next unit of work, or nil and when there will be some if nothing else happens. It selects the work
// from one desired state: plans need the topology that belongs to them.
func (r *Runner) next() (work func(context.Context), wakeup time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest() == nil {
		return nil, time.Now().Add(r.options.ResyncPeriod)
	}
	if r.servicesFirst() {
		if work := r.services(); work != nil {
			return work, time.Time{}
		}
	}
	r.pull()
	if work := r.step(); work != nil {
		return work, time.Time{}
	}
	return nil, r.nextWakeup()
}

// servicesFirst reports whether what is due for Services precedes the newest topology. There may always be another
// topology: a node can rewrite its annotations as often as it likes. Another order of gateways does not wait, except if
// it would be the third topology in succession. r.mu must be held.
func (r *Runner) servicesFirst() bool {
	if r.newest == nil || r.inSuccession == 0 || plan.EqualTopologies(r.topology, r.newest.topology) {
		return false
	}
	return r.inSuccession > 1 || !reorders(r.topology, r.newest.topology)
}

// step returns the next unit of work, or nil if there is none. r.mu must be held.
func (r *Runner) step() func(context.Context) {
	now := time.Now()
	other := !plan.EqualTopologies(r.topology, r.want.topology)
	if other {
		r.topologyRetry = retry{} // a different topology is tried now, and starts at the first delay again
	}
	if other || r.topologyStale && !now.Before(r.topologyRetry.at) {
		topology := r.want.topology
		r.inSuccession++
		return func(ctx context.Context) { r.configure(ctx, topology) }
	}
	return r.services()
}

// services returns the next unit of work with the present topology, or nil if there is none. r.mu must be held.
func (r *Runner) services() func(context.Context) {
	prune := r.pruneDue && !time.Now().Before(r.pruneRetry.at)
	if !prune || r.overtook < overtaking {
		if batch := r.batch(); len(batch) > 0 {
			if r.inSuccession = 0; prune {
				r.overtook++
			}
			return func(ctx context.Context) { r.apply(ctx, batch) }
		}
	}
	if prune {
		r.inSuccession, r.overtook = 0, 0
		return r.prune
	}
	return nil
}

func (r *Runner) configure(ctx context.Context, topology *plan.Topology) {
	failed := r.topologyError != nil
	err := r.repeatServices(r.dataplane.Configure(ctx, topology))
	if ctx.Err() != nil {
		return
	}
	r.topology, r.topologyStale, r.topologyError = topology, err != nil, err
	r.recordTopology()
	if err != nil {
		r.topologyRetry = r.topologyRetry.next()
		return
	}
	r.topologyRetry = retry{}
	if failed {
		// Keys may have failed because the topology was missing.
		r.retryNow(time.Now())
	}
}

// repeatServices marks the Services of a ServicesError to be applied again, and returns what else has failed.
func (r *Runner) repeatServices(err error) error {
	var failed dataplane.ServicesError
	if !errors.As(err, &failed) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range failed.Services {
		if r.want.plans[k] != nil {
			r.stale[k] = struct{}{}
		}
	}
	return failed.Other
}

func (r *Runner) apply(ctx context.Context, batch []dataplane.Change) {
	failed := r.dataplane.Apply(ctx, batch)
	if ctx.Err() != nil {
		return
	}
	results := make([]Result, 0, len(batch))
	for _, c := range batch {
		err := failed[c.Key]
		if r.postpone(c, err) {
			results = append(results, Result{Key: c.Key, Plan: c.Want, Postponed: true})
			continue
		}
		results = append(results, Result{Key: c.Key, Plan: c.Want, Err: err})
	}
	r.record(results)
	r.options.Report(results)
}

func (r *Runner) prune(ctx context.Context) {
	err := r.repeatServices(r.dataplane.Prune(ctx, r.keeps))
	if ctx.Err() != nil {
		return
	}
	if err != nil || r.pruneError != nil {
		r.pruneError = err
		r.recordTopology()
	}
	if err != nil {
		r.pruneRetry = r.pruneRetry.next()
		return
	}
	r.pruneDue, r.pruneRetry = false, retry{}
}

// keeps reports whether the dataplane must have a Service.
func (r *Runner) keeps(k world.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest().has(k)
}

// nextWakeup returns when there will be work to do if nothing else happens.
func (r *Runner) nextWakeup() time.Time {
	next := r.nextResync
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, retry := range r.retries {
		earlier(retry.at)
	}
	for _, p := range r.postponed {
		earlier(p.until)
	}
	if r.topologyRetry.failures > 0 {
		earlier(r.topologyRetry.at)
	}
	if r.pruneDue {
		earlier(r.pruneRetry.at)
	}
	return next
}
