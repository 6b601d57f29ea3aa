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

// Result is what became of the newest attempt on a Service.
type Result struct {
	Key world.Key
	// Plan is what was handed over, nil for a removal.
	Plan *plan.Service
	Err  error
}

// Options of a Runner.
type Options struct {
	// Report is told, from the runner's goroutine, what became of each batch; it must not
	// block. Nil tells nobody.
	Report func([]Result)
	// ReportGround is told how the last Configure or Prune went (nil: done); nil tells nobody.
	ReportGround func(error)
	// Alive is called before each piece of work, and every few seconds while there is none; nil for not at all.
	Alive func()
	// Batch is the most repetitions in one Apply, so that changes need not wait for all of
	// them; 0 for 200. All changes that there are go together: Services share much of what
	// a dataplane has to look at.
	Batch int
	// Period is the time between two repetitions of everything; 0 for an hour.
	Period time.Duration
}

// aliveEvery is the time between two signs of life of a runner that has nothing to do.
const aliveEvery = 5 * time.Second

// Runner hands the newest plans to a dataplane. Set and Resync may be called from any goroutine.
type Runner struct {
	dataplane dataplane.Dataplane
	options   Options

	mu     sync.Mutex
	newest *desired
	// changed are the plans that differ from the newest, or else from the wanted, ones.
	changed map[world.Key]*plan.Service
	resync  bool
	wake    chan struct{}

	// The rest belongs to Run's goroutine.
	want    *desired
	applied map[world.Key]*plan.Service // accepted by the dataplane
	dirty   map[world.Key]struct{}      // want differs from applied
	stale   map[world.Key]struct{}      // to be repeated
	retries map[world.Key]retry         // failed; what the dataplane has is not known

	fabric      *plan.Fabric // accepted by the dataplane
	fabricRetry retry
	fabricStale bool
	groundError error // of the last Configure
	pruneDue    bool
	pruneRetry  retry
	repeatAt    time.Time
}

// desired is one whole state that the dataplane shall reach.
type desired struct {
	fabric *plan.Fabric
	plans  map[world.Key]*plan.Service
}

// New returns a Runner that does nothing until Run.
func New(d dataplane.Dataplane, o Options) *Runner {
	o.Batch = cmp.Or(o.Batch, 200)
	o.Period = cmp.Or(o.Period, time.Hour)
	if o.Report == nil {
		o.Report = func([]Result) {}
	}
	if o.ReportGround == nil {
		o.ReportGround = func(error) {}
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

// Set replaces the state to reach, whole: a Service that plans does not name is removed.
// The caller never changes the plans, but may change the map.
func (r *Runner) Set(fabric *plan.Fabric, plans map[world.Key]*plan.Service) {
	plans = maps.Clone(plans)
	r.mu.Lock()
	r.newest = &desired{fabric, plans}
	clear(r.changed)
	r.mu.Unlock()
	r.signal()
}

// Change replaces the plan of one Service in the state to reach; nil removes it.
func (r *Runner) Change(key world.Key, p *plan.Service) {
	r.mu.Lock()
	r.changed[key] = p
	r.mu.Unlock()
	r.signal()
}

// Resync hands everything over again and prunes: after a reconnect, or when the
// dataplane's rows drifted.
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

// Run works until the context ends.
func (r *Runner) Run(ctx context.Context) {
	timer := time.NewTimer(r.options.Period)
	defer timer.Stop()
	for ctx.Err() == nil {
		r.options.Alive()
		r.take()
		if r.want != nil && r.step(ctx) {
			continue
		}
		timer.Reset(min(time.Until(r.next()), aliveEvery))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// take adopts the newest state and works out what differs from what the dataplane has.
func (r *Runner) take() {
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
		r.mark(k)
	}
	now := time.Now()
	if first || resync || !now.Before(r.repeatAt) {
		r.repeat(now)
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
		r.mark(k)
	}
	for k := range r.applied {
		r.mark(k)
	}
	for k := range r.retries {
		r.mark(k)
	}
}

// mark notes whether the plan of a Service is to be handed over.
func (r *Runner) mark(k world.Key) {
	last, has := r.applied[k], r.want.plans[k]
	if retry, failed := r.retries[k]; failed {
		// The same plan again waits for its time; another one deserves a try now.
		last = retry.plan
	}
	if Equal(last, has) {
		delete(r.dirty, k)
	} else {
		r.dirty[k] = struct{}{}
	}
}

// repeat marks everything to be handed over again, at once.
func (r *Runner) repeat(now time.Time) {
	r.repeatAt = now.Add(r.options.Period)
	r.fabricStale, r.fabricRetry = true, retry{}
	r.pruneDue, r.pruneRetry = true, retry{}
	for k := range r.want.plans {
		r.stale[k] = struct{}{}
	}
	r.retryNow(now)
}

// retryNow ends the pauses of all failed keys.
func (r *Runner) retryNow(now time.Time) {
	for k, retry := range r.retries {
		retry.at = now
		r.retries[k] = retry
		r.dirty[k] = struct{}{}
	}
}

// step does one piece of work and tells whether it found any.
func (r *Runner) step(ctx context.Context) bool {
	now := time.Now()
	if due := !now.Before(r.fabricRetry.at); r.fabricStale && due || (due || r.partly()) && !equalFabrics(r.fabric, r.want.fabric) {
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
	fabric := r.want.fabric
	err := r.dataplane.Configure(ctx, fabric)
	if ctx.Err() != nil {
		return
	}
	r.groundError = err
	r.options.ReportGround(err)
	if err != nil {
		r.fabricStale = true
		r.fabricRetry = r.fabricRetry.after(nil)
		if r.partly() {
			r.fabric = fabric
		}
		return
	}
	if r.fabricRetry.failures > 0 {
		// Keys may have failed for want of the ground they stand on.
		r.retryNow(time.Now())
	}
	r.fabric, r.fabricStale, r.fabricRetry = fabric, false, retry{}
}

// partly reports whether the last Configure left out some shards and did all else: another
// fabric does not wait for their next try.
func (r *Runner) partly() bool { return errors.As(r.groundError, new(dataplane.ShardsError)) }

// batch picks all changes, or else some repetitions.
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
			r.retries[c.Key] = r.retries[c.Key].after(c.Want)
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
		r.options.ReportGround(err)
		r.pruneRetry = r.pruneRetry.after(nil)
		return
	}
	if r.pruneRetry.failures > 0 {
		r.options.ReportGround(r.groundError)
	}
	r.pruneDue, r.pruneRetry = false, retry{}
}

// next is when there will be something to do if nothing else happens.
func (r *Runner) next() time.Time {
	now := time.Now()
	if r.want == nil {
		return now.Add(r.options.Period)
	}
	next := r.repeatAt
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, retry := range r.retries {
		earlier(retry.at)
	}
	if r.fabricRetry.failures > 0 {
		earlier(r.fabricRetry.at)
	}
	if r.pruneDue {
		earlier(r.pruneRetry.at)
	}
	return next
}
