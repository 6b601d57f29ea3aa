// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// claimWritePause is the minimum time between two rounds of writes.
	claimWritePause = 100 * time.Millisecond
	// claimRetry is the time until the write of a claim that failed is repeated, twice as long after each further failure
	// up to claimMaxRetry. A round without anything else begins claimRetry after the last one, and ends after that time,
	// so that one decision handles the errors of many claims.
	claimRetry, claimMaxRetry = time.Second, time.Minute
)

// ClaimWriter makes the IPAddressClaims of ours as desired.
type ClaimWriter struct {
	client    dynamic.Interface
	namespace string
	facts     *Facts
	watch     *Watch
	wrote     Wrote
	wake      chan struct{}
	// queue has the changes that are due according to the decision with the number planned, and failures the claims whose
	// last write failed. paused is how long the first of the other changes waits because others undo them, 0 for none.
	// Only Run uses these.
	queue    fairQueue[claimChange]
	planned  int
	failures map[string]*claimFailure
	repairs  claimRepairs
	paused   time.Duration

	mu   sync.Mutex
	want map[string]*world.WantedClaim
	// decisions counts the calls of Set.
	decisions int
}

// NewClaimWriter returns a writer for the claims in facts.
func NewClaimWriter(ours *Clients, facts *Facts, watch *Watch, wrote Wrote) *ClaimWriter {
	return &ClaimWriter{client: ours.Dynamic, namespace: ours.ClaimNamespace, facts: facts, watch: watch, wrote: wrote,
		wake: make(chan struct{}, 1), failures: map[string]*claimFailure{}, repairs: claimRepairs{}}
}

// claimFailure is the last error of a claim, the time of the next attempt, and the wait until then.
type claimFailure struct {
	verb claimVerb
	err  string
	next time.Time
	wait time.Duration
}

// Set replaces the desired claims. If known is not set, nothing is written until the next call.
func (w *ClaimWriter) Set(want []*world.WantedClaim, known bool) {
	next := make(map[string]*world.WantedClaim, len(want))
	for _, c := range want {
		next[c.Name] = c
	}
	if !known {
		next = nil
	}
	w.mu.Lock()
	w.want = next
	w.decisions++
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until the context ends.
func (w *ClaimWriter) Run(ctx context.Context) {
	Rounds(ctx, w.wake, func() (rest, again time.Duration) { return claimWritePause, w.write(ctx) })
}

// write performs one round of writes. It returns after how long to call it again without a decision, 0 for never.
func (w *ClaimWriter) write(ctx context.Context) time.Duration {
	written, began := map[string]bool{}, time.Now()
	for w.plan(written) {
		if time.Since(began) > claimRetry {
			break
		}
		c := w.queue.next()
		written[c.name] = true
		err := w.change(ctx, c)
		if ctx.Err() != nil {
			return 0
		}
		w.wrote(claimKind, err)
		if err == nil {
			delete(w.failures, c.name)
			w.repairs.done(c, time.Now())
			continue
		}
		if !errors.IsConflict(err) {
			klog.ErrorS(err, "Failed to write IPAddressClaim, will retry", "name", c.name, "change", c.verb)
		}
		f := &claimFailure{verb: c.verb, err: convert.Bounded(err.Error()), wait: claimRetry}
		if last := w.failures[c.name]; last != nil {
			f.wait = min(2*last.wait, claimMaxRetry)
		}
		f.next = time.Now().Add(f.wait)
		w.failures[c.name] = f
	}
	refused, again := map[string]string{}, w.paused
	if w.queue.length > 0 {
		again = claimWritePause
	}
	for name, f := range w.failures {
		if f.verb == createClaim {
			refused[name] = f.err
		}
		if left := max(time.Until(f.next), claimRetry); again == 0 || left < again {
			again = left
		}
	}
	w.facts.setUnwrittenClaims(refused, w.repairs.deleted(time.Now()))
	return again
}

// plan replaces the queue when a round begins, and in it after each decision: the claims of a namespace that has many
// must not delay those that others need meanwhile. What was written in this round waits for its event, what failed for
// its next attempt, and what others undo for its next repair. plan returns false if nothing is due.
func (w *ClaimWriter) plan(written map[string]bool) bool {
	w.mu.Lock()
	want, decision := w.want, w.decisions
	w.mu.Unlock()
	if len(written) > 0 && decision == w.planned {
		return w.queue.length > 0
	}
	w.facts.mu.Lock()
	now := w.facts.readClaims()
	w.facts.mu.Unlock()
	if want != nil {
		maps.DeleteFunc(w.repairs, func(name string, _ *claimRepair) bool { return want[name] == nil })
	}
	due, failures := map[string][]claimChange{}, map[string]*claimFailure{}
	w.paused = 0
	if want != nil && now != nil && now.Missing == "" {
		for _, c := range claimChanges(want, now.ByName) {
			f := w.failures[c.name]
			if f != nil {
				failures[c.name] = f
			}
			if wait := w.repairs.wait(c, time.Now()); wait > 0 {
				w.paused = min(cmp.Or(w.paused, wait), wait)
			} else if !written[c.name] && (f == nil || time.Until(f.next) <= 0) {
				due[c.namespace] = append(due[c.namespace], c)
			}
		}
	}
	w.queue.replace(due)
	w.failures = failures // Those of claims that are not wanted any more are forgotten.
	w.planned = decision
	return w.queue.length > 0
}

// claimVerb is what is to be done with a claim.
type claimVerb string

const (
	createClaim  claimVerb = "create"
	deleteClaim  claimVerb = "delete"
	releaseClaim claimVerb = "remove the finalizer"
	keepClaim    claimVerb = "add the finalizer"
)

type claimChange struct {
	name string
	verb claimVerb
	want *world.WantedClaim
	// namespace is that of the Service.
	namespace string
}

// claimChanges returns what makes the present claims as desired, by name.
func claimChanges(want map[string]*world.WantedClaim, have map[string]*world.Claim) []claimChange {
	var out []claimChange
	names := maps.Clone(want)
	for name := range have {
		names[name] = want[name]
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		wanted, present := want[name], have[name]
		c := claimChange{name: name, want: wanted}
		if present != nil {
			c.namespace = present.Namespace
		} else {
			c.namespace = wanted.Service.Namespace
		}
		switch {
		case present == nil && !wanted.InUse:
			c.verb = createClaim
		case present == nil:
			continue
		case present.Deleting && (wanted == nil || !wanted.InUse) && present.Kept:
			c.verb = releaseClaim // no Service has its address
		case present.Deleting:
			continue
		case wanted == nil:
			c.verb = deleteClaim
		case !present.Kept:
			c.verb = keepClaim
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

func (w *ClaimWriter) change(ctx context.Context, c claimChange) error {
	version := w.watch.claimVersion()
	if version == nil {
		return fmt.Errorf("the API server has no IPAddressClaims")
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	claims := w.client.Resource(*version).Namespace(w.namespace)
	if c.verb == createClaim {
		_, err := claims.Create(ctx, convert.NewClaim(c.want, w.namespace, version.GroupVersion()), metav1.CreateOptions{})
		if !errors.IsAlreadyExists(err) {
			return err
		}
		// Ours, if the event of its creation has not arrived yet.
		have, err := claims.Get(ctx, c.name, metav1.GetOptions{})
		if err == nil && !convert.IsOurClaim(have) {
			err = fmt.Errorf("an object of others has this name, without the label %s: delete it", v1alpha1.LabelServiceUID)
		}
		return err
	}
	have := w.facts.claim(c.name)
	if have == nil {
		return nil
	}
	uid := have.GetUID()
	if c.verb == deleteClaim {
		err := claims.Delete(ctx, c.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		return ignoreGone(err)
	}
	next := have.DeepCopy()
	others := slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return f == v1alpha1.FinalizerClaim })
	if c.verb == keepClaim {
		others = append(others, v1alpha1.FinalizerClaim)
	}
	next.SetFinalizers(others)
	_, err := claims.Update(ctx, next, metav1.UpdateOptions{})
	return ignoreGone(err)
}

// ignoreGone returns an error unless it means that an object is gone: its event causes a decision. That of a change by
// others may cause none, so a conflict is an error.
func ignoreGone(err error) error {
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// claimVersion returns the version in which claims are read, nil without one.
func (w *Watch) claimVersion() *schema.GroupVersionResource {
	if w.claims == nil {
		return nil
	}
	return w.claims.version.Load()
}
