// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// writers is the number of concurrent writes beyond which the API server's rate of status writes does not increase.
	writers = 16
	// conflictPause bounds the time to wait for the informer's newer object after a conflict.
	conflictPause = time.Second
	// failoverGracePeriod is how long a gateway may be missing before the status of a Service reports it. A failover is
	// over by then.
	failoverGracePeriod = time.Second
	// sendTimeout is how long the API server has to respond to a write.
	sendTimeout = 10 * time.Second
)

// Wrote is called after each status write, with the kind of object.
type Wrote func(kind string, err error)

// ServiceWriter writes the desired statuses of Services.
type ServiceWriter struct {
	client     corev1client.ServicesGetter
	read       func(world.Key) *corev1.Service
	ours       func(*corev1.Service) bool
	wake       func()
	events     *Events
	wrote      Wrote
	priorities *priorityQueue
	queue      workqueue.TypedRateLimitingInterface[job]
	failures   failureLog

	mu          sync.Mutex
	want        map[world.Key]*status.Service
	unconfirmed map[world.Key]written[*corev1.Service]
	dampings    map[world.Key]*damping
	repairs     map[world.Key]*repairs
	// busy contains the keys being written, each with the job for the same key that was taken with the other priority
	// in the meantime, if any.
	busy map[world.Key]*job
	// open are the keys whose statuses may differ from the desired ones, and sent the writes without an answer.
	open map[world.Key]openStatus
	sent map[world.Key]sentAddrs
	// lastUnsettled is what Unsettled has returned last and still holds or is shown.
	lastUnsettled map[world.Key][]netip.Addr
}

// NewServiceWriter returns a writer that compares with the objects in facts.
func NewServiceWriter(client corev1client.ServicesGetter, facts *Facts, events *Events, wrote Wrote) *ServiceWriter {
	priorities := &priorityQueue{}
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[job]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[job]{Queue: priorities}),
	})
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[job](20*time.Millisecond, time.Minute)
	return &ServiceWriter{
		client:     client,
		read:       facts.Service,
		ours:       facts.IsManaged,
		wake:       facts.hooks.Wake,
		events:     events,
		wrote:      wrote,
		priorities: priorities,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[job]{DelayingQueue: queue}),
		want:        map[world.Key]*status.Service{},
		unconfirmed: map[world.Key]written[*corev1.Service]{},
		dampings:    map[world.Key]*damping{},
		repairs:     map[world.Key]*repairs{},
		busy:        map[world.Key]*job{},
		open:        map[world.Key]openStatus{},
		sent:        map[world.Key]sentAddrs{},
	}
}

// Set replaces all desired statuses. The writer keeps the map.
func (w *ServiceWriter) Set(want map[world.Key]*status.Service) {
	w.mu.Lock()
	before := w.want
	w.want = want
	maps.DeleteFunc(w.unconfirmed, func(k world.Key, m written[*corev1.Service]) bool {
		have := w.read(k)
		return want[k] == nil || have == nil || have.ResourceVersion == m.object.ResourceVersion
	})
	maps.DeleteFunc(w.dampings, func(k world.Key, _ *damping) bool { return want[k] == nil })
	maps.DeleteFunc(w.repairs, func(k world.Key, _ *repairs) bool { return want[k] == nil })
	maps.DeleteFunc(w.sent, func(k world.Key, s sentAddrs) bool { return s.isObsolete(w.read(k)) })
	w.mu.Unlock()
	for key, s := range want {
		w.enqueueIfChanged(key, before[key], s)
	}
	w.wakeForFreed()
}

// Change replaces some desired statuses; nil removes one. Change and Set must be called from one goroutine.
func (w *ServiceWriter) Change(some map[world.Key]*status.Service) {
	before := make(map[world.Key]*status.Service, len(some))
	w.mu.Lock()
	for key, s := range some {
		before[key] = w.want[key]
		if s != nil {
			w.want[key] = s
		} else {
			delete(w.want, key)
			delete(w.unconfirmed, key)
			delete(w.dampings, key)
			delete(w.repairs, key)
		}
	}
	w.mu.Unlock()
	for key, s := range some {
		if s != nil {
			w.enqueueIfChanged(key, before[key], s)
		}
	}
	w.wakeForFreed(slices.Collect(maps.Keys(some))...)
}

// enqueueIfChanged queues a status for comparison if it differs from the previous desired status.
func (w *ServiceWriter) enqueueIfChanged(key world.Key, before, s *status.Service) {
	if before != nil && before.Equal(s) {
		return
	}
	w.recordDamping(key, before, s)
	j := w.job(key, s)
	if lostGateway(before, s) {
		w.queue.AddAfter(j, failoverGracePeriod)
	} else {
		w.queue.Add(j)
	}
}

// job returns the job for a status.
func (w *ServiceWriter) job(key world.Key, s *status.Service) job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isOpen(key) {
		w.open[key] = openStatus{since: time.Now()}
	}
	have := w.newest(key)
	return job{key: key, address: have != nil && !s.LeaveIngress && !slices.Equal(convert.Assigned(have), s.Addrs)}
}

// lostGateway reports whether the only change is that there is no active gateway any more.
func lostGateway(before, s *status.Service) bool {
	return before != nil && before.Announced != nil && s.Announced != nil &&
		before.Announced.Status == metav1.ConditionTrue && s.Announced.Reason == v1alpha1.ReasonNoActiveGateway &&
		slices.Equal(before.Addrs, s.Addrs) && before.Allocated == s.Allocated
}

// Expected reports whether these are the desired addresses of a Service.
func (w *ServiceWriter) Expected(key world.Key, addrs []netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.want[key]
	return s != nil && !s.Release && slices.Equal(s.Addrs, addrs)
}

// Changed queues a Service for comparison because its object was replaced.
func (w *ServiceWriter) Changed(key world.Key) {
	w.mu.Lock()
	s := w.want[key]
	w.mu.Unlock()
	if s != nil {
		w.queue.Add(w.job(key, s))
	}
}

// Busy reports whether addresses of Services are waiting to be written.
func (w *ServiceWriter) Busy() bool { return w.priorities.urgent.Load() > 0 }

// Run writes until the context ends. It then waits for the writes in flight, for at most ten seconds.
func (w *ServiceWriter) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer w.queue.ShutDown() // It has not been called if the end of ctx was noticed first.
	defer stop()
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for {
				j, down := w.queue.Get()
				if down || ctx.Err() != nil { // the next leader writes what is queued
					return
				}
				if w.begin(j) {
					w.write(ctx, j)
					w.end(j)
				}
				w.priorities.done(j)
				w.queue.Done(j)
			}
		})
	}
	running.Wait()
}

// begin reserves a key for the calling writer. It returns false if another writer has the key; that writer then takes
// over the job.
func (w *ServiceWriter) begin(j job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, busy := w.busy[j.key]; busy {
		w.busy[j.key] = &j
		return false
	}
	w.busy[j.key] = nil
	return true
}

func (w *ServiceWriter) end(j job) {
	w.mu.Lock()
	next := w.busy[j.key]
	delete(w.busy, j.key)
	w.mu.Unlock()
	w.wakeForFreed(j.key)
	if next != nil {
		w.queue.Add(*next)
	}
}

func (w *ServiceWriter) write(ctx context.Context, j job) {
	key := j.key
	w.mu.Lock()
	want := w.want[key]
	have := w.newest(key)
	own := have != nil && have == w.unconfirmed[key].object
	w.mu.Unlock()
	if want == nil || have == nil || string(have.UID) != want.UID {
		w.forgetSent(key, have)
		w.skip(j, want)
		return
	}
	if want.Release == w.ours(have) {
		w.skip(j, want)
		return // decided for an earlier object; the next decision will follow
	}
	if !own && !want.Expects(have) {
		w.skip(j, want)
		w.wake()
		return
	}
	now := time.Now()
	desired, wait := w.damped(key, want, have, now)
	next, changed := desired.Merged(have, now)
	if wait > 0 {
		defer w.queue.AddAfter(j, wait)
	}
	if !changed {
		w.skip(j, want)
		return
	}
	if left := w.repairPause(key, desired, now); left > 0 {
		w.queue.AddAfter(j, left)
		return
	}
	w.mu.Lock()
	earlier := w.sent[key]
	if earlier.uid != next.UID {
		earlier = sentAddrs{} // of a Service that is gone
	}
	w.sent[key] = earlier.with(next)
	w.reopen(key)
	w.mu.Unlock()
	// A request that was sent may be applied even if the client no longer waits for it. Therefore Run waits for the
	// writes in flight when it ends, so that the next leader reads their result.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	got, err := w.client.Services(key.Namespace).UpdateStatus(sending, next, metav1.UpdateOptions{})
	if ctx.Err() != nil {
		return
	}
	if err == nil || errors.IsNotFound(err) || errors.IsConflict(err) {
		w.mu.Lock()
		delete(w.sent, key)
		w.mu.Unlock()
	} else if maxPause(err) > 0 { // it will not be applied
		w.mu.Lock()
		if w.sent[key] = earlier; len(earlier.addrs) == 0 {
			delete(w.sent, key)
		}
		w.mu.Unlock()
	}
	w.wrote("Service", err)
	if err == nil {
		w.recordWrite(key, desired, now)
		w.recordWritten(key, want, now)
	}
	w.finish(j, have, got, err)
}

// finish handles the result of a write: the object after it or the error. have is the object that was written over.
func (w *ServiceWriter) finish(j job, have, got *corev1.Service, err error) {
	key := j.key
	switch {
	case err == nil:
		got.SetManagedFields(nil)
		w.mu.Lock()
		w.unconfirmed[key] = written[*corev1.Service]{over: have.ResourceVersion, object: got}
		w.mu.Unlock()
		w.queue.Forget(j)
		w.events.service(have, got)
	case errors.IsNotFound(err):
		w.queue.Forget(j)
	case errors.IsConflict(err):
		w.mu.Lock()
		delete(w.unconfirmed, key)
		w.mu.Unlock()
		if now := w.read(key); now != nil && now.ResourceVersion != have.ResourceVersion {
			w.queue.Add(j)
		} else {
			// Changed is called when the newer object arrives. The pause covers the case that it does not arrive.
			w.queue.AddAfter(j, conflictPause)
		}
	default:
		if skipped, allowed := w.failures.allow(err, time.Now()); allowed {
			klog.ErrorS(err, "Failed to write Service status", "service", key.String(), "failuresNotLogged", skipped)
		}
		w.queue.AddRateLimited(j)
	}
}

// skip ends a job for which there is nothing to write.
func (w *ServiceWriter) skip(j job, want *status.Service) {
	w.queue.Forget(j)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.want[j.key] == want {
		delete(w.open, j.key)
	}
}

// newest returns our own last write for as long as the informer shows the object that it replaced.
func (w *ServiceWriter) newest(key world.Key) *corev1.Service {
	have := w.read(key)
	mine, ok := w.unconfirmed[key]
	if !ok {
		return have
	}
	if have != nil && have.ResourceVersion == mine.over && have.UID == mine.object.UID {
		return mine.object
	}
	delete(w.unconfirmed, key)
	return have
}
