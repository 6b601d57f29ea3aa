// SPDX-License-Identifier: Apache-2.0

package kube

import (
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

// claimWritePause is the minimum time between two rounds of writes. While writes fail, it grows from claimRetry to
// claimMaxRetry.
const claimWritePause, claimRetry, claimMaxRetry = 100 * time.Millisecond, time.Second, time.Minute

// ClaimWriter makes the IPAddressClaims of ours as desired.
type ClaimWriter struct {
	client    dynamic.Interface
	namespace string
	facts     *Facts
	watch     *Watch
	wrote     Wrote
	wake      chan struct{}
	// queue has the changes that are due according to the decision with the number planned. Only Run uses them.
	queue   fairQueue[claimChange]
	planned int

	mu   sync.Mutex
	want map[string]*world.WantedClaim
	// decisions counts the calls of Set.
	decisions int
}

// NewClaimWriter returns a writer for the claims in facts.
func NewClaimWriter(ours *Clients, facts *Facts, watch *Watch, wrote Wrote) *ClaimWriter {
	return &ClaimWriter{client: ours.Dynamic, namespace: ours.ClaimNamespace, facts: facts, watch: watch, wrote: wrote,
		wake: make(chan struct{}, 1)}
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
	writeRounds(ctx, w.wake, w.write, claimWritePause, claimRetry, claimMaxRetry)
}

// write performs one round of writes. It returns false if some failed.
func (w *ClaimWriter) write(ctx context.Context) bool {
	refused, written := map[string]string{}, map[string]bool{}
	done := true
	for w.plan(written) {
		c := w.queue.next()
		written[c.name] = true
		err := w.change(ctx, c)
		if ctx.Err() != nil {
			return false
		}
		w.wrote("IPAddressClaim", err)
		if err == nil {
			continue
		}
		done = false
		klog.ErrorS(err, "Failed to write IPAddressClaim, will retry", "name", c.name, "change", c.verb)
		if c.verb == createClaim {
			refused[c.name] = convert.Bounded(err.Error())
		}
	}
	w.facts.setClaimsRefused(refused)
	return done
}

// plan replaces the queue when a round begins, and in it after each decision: the claims of a namespace that has many
// must not delay those that others need meanwhile. What was written in this round waits for its event. plan returns
// false if nothing is due.
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
	due := map[string][]claimChange{}
	if want != nil && now != nil && now.Missing == "" {
		for _, c := range claimChanges(want, now.ByName) {
			if !written[c.name] {
				due[c.namespace] = append(due[c.namespace], c)
			}
		}
	}
	w.queue.replace(due)
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

// ignoreGone returns an error unless it means that an object is gone or was changed: its event is on the way, and the
// next decision is made with it.
func ignoreGone(err error) error {
	if errors.IsNotFound(err) || errors.IsConflict(err) {
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
