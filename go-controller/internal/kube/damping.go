// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A node or a router can change the condition Announced of all Services that it serves as often as it likes, for
// example by the reasons that it gives, or by ending its session again and again. So can a provider of addresses, or
// whoever writes its objects, with the condition Allocated.
const (
	// textBurst changes that leave the status of both conditions as it is, where Unknown counts as False, are written at
	// once, further ones one per textPause.
	textBurst = 10
	textPause = time.Minute
	// freeLosses is how often the condition can cease to be True without an effect on its return. Then it must have
	// lasted for firstProbation to be written, and for twice as long after each further loss, up to longestProbation.
	freeLosses       = 2
	firstProbation   = 10 * time.Second
	longestProbation = time.Minute
	// passing is how long it must have lasted for the last cause to be replaced by ReasonUnsteady meanwhile.
	passing = 2 * time.Second
	// quiet is how long it must have stayed as it is for the losses to be forgotten.
	quiet = 5 * time.Minute
)

// unsteady is added to the message of a condition whose return is delayed, and returning to that of the decision which
// has to last. They have no number that changes: each would be a write.
const (
	unsteady  = "; this changed often, so Announced is True again only when that has lasted for up to 1 min"
	returning = "; this changed often, so Announced is True only when it has lasted for up to 1 min"
)

// damping limits how often the status of one Service is written because of these conditions. That Announced is no
// longer True is never delayed, so only its return is limited: the number of writes is, too, and True is never out of
// date. Meanwhile the condition is Unknown, and says what must last: the last cause has passed.
// A restart forgets the losses. That costs each unsteady Service one write and freeLosses further ones, and nothing
// that a node or router does restarts the controller.
type damping struct {
	limit *rate.Limiter
	// up is whether the last decision is True, since when, and losses how often it ceased to be.
	known, up bool
	since     time.Time
	losses    int
}

// record records a decision. The first one is not a change.
func (d *damping) record(s *status.Service, now time.Time) {
	if s.Announced == nil {
		return
	}
	up := s.Announced.Status == metav1.ConditionTrue
	switch {
	case !d.known:
		d.known, d.up = true, up
	case d.up != up:
		if now.Sub(d.since) >= quiet {
			d.losses = 0
		}
		if !up {
			d.losses++
		}
		d.up, d.since = up, now
	}
}

// probation returns how long the decision must have been True to be written.
func (d *damping) probation() time.Duration {
	if d.losses <= freeLosses {
		return 0
	}
	wait := firstProbation
	for n := d.losses - freeLosses; n > 1 && wait < longestProbation; n-- {
		wait *= 2
	}
	return min(wait, longestProbation)
}

// recordDamping records that the desired status of a Service changes. The condition of other addresses is not a return
// of that of the former ones.
func (w *ServiceWriter) recordDamping(key world.Key, before, s *status.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.dampings[key]
	if d == nil || before != nil && !slices.Equal(before.Addrs, s.Addrs) {
		d = &damping{}
		w.dampings[key] = d
	}
	d.record(s, time.Now())
}

// damped returns the status that may be written now, in which conditions are as they are if they have to wait, and for
// how long; 0 if they have not.
func (w *ServiceWriter) damped(key world.Key, s *status.Service, have *corev1.Service,
	now time.Time) (*status.Service, time.Duration) {
	allocated := meta.FindStatusCondition(have.Status.Conditions, v1alpha1.ConditionAllocated)
	announced := meta.FindStatusCondition(have.Status.Conditions, v1alpha1.ConditionAnnounced)
	if s.Release || s.Announced == nil || allocated == nil || announced == nil || s.ChangesIngress(have) {
		return s, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.dampings[key]
	if d == nil {
		return s, 0
	}
	next, same, wait := *s, *s, time.Duration(0)
	same.Allocated = status.Verdict{Status: allocated.Status, Reason: allocated.Reason, Message: allocated.Message}
	same.Announced = &status.Verdict{Status: announced.Status, Reason: announced.Reason, Message: announced.Message}
	up, was, probation := isTrue(s.Announced.Status), isTrue(announced.Status), d.probation()
	if left := d.since.Add(probation).Sub(now); up && !was && probation > 0 && left > 0 {
		next.Announced, wait = same.Announced, left
		if soon := d.since.Add(passing).Sub(now); soon > 0 {
			wait = min(wait, soon)
		} else {
			next.Announced = &status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonUnsteady,
				Message: s.Announced.Message + returning}
		}
	} else if !up && probation > 0 {
		v := *s.Announced
		v.Message += unsteady
		next.Announced = &v
	}
	if isTrue(next.Announced.Status) != was || isTrue(s.Allocated.Status) != isTrue(allocated.Status) {
		return &next, wait
	}
	if !up && announced.Reason == v1alpha1.ReasonUnsteady { // It says that the addresses are announced.
		return &next, wait
	}
	if _, changed := next.Merged(have, now); !changed {
		return &next, wait
	}
	if _, more := same.Merged(have, now); more {
		return &next, wait // Something else is to be written anyway.
	}
	if d.limit == nil {
		d.limit = rate.NewLimiter(rate.Every(textPause), textBurst)
	}
	r := d.limit.ReserveN(now, 1)
	if left := r.DelayFrom(now); left > 0 {
		r.CancelAt(now)
		if wait == 0 || left < wait {
			wait = left
		}
		return &same, wait
	}
	return &next, wait
}

func isTrue(s metav1.ConditionStatus) bool { return s == metav1.ConditionTrue }
