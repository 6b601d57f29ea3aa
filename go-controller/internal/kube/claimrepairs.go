// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
)

// claimRepairs limit how often a claim is created, or gets our finalizer, because another client undoes that: a
// provider that deletes claims that it can't fulfil, or a job that cleans up. They have each wanted claim that was
// written.
type claimRepairs map[string]*claimRepair

type claimRepair struct {
	// verb is what was done last, and free when it may be done again. It waits if pause is positive.
	verb    claimVerb
	free    time.Time
	pause   time.Duration
	backoff dataplane.DriftBackoff
}

// wait returns how long a change must wait.
func (r claimRepairs) wait(c claimChange, now time.Time) time.Duration {
	last := r[c.name]
	if last == nil || c.verb != createClaim && c.verb != keepClaim {
		return 0
	}
	return max(0, last.free.Sub(now))
}

// done records a change that was made.
func (r claimRepairs) done(c claimChange, now time.Time) {
	if c.verb != createClaim && c.verb != keepClaim {
		return
	}
	last := r[c.name]
	if last == nil {
		last = &claimRepair{}
		r[c.name] = last
	}
	pause := last.backoff.Reported(now)
	if pause > 0 && last.pause == 0 {
		klog.InfoS("Another client undoes what is written to an IPAddressClaim again and again; repairs wait",
			"name", c.name, "change", c.verb)
	}
	last.verb, last.pause, last.free = c.verb, pause, now.Add(pause)
}

// deleted returns the claims that another client deletes again and again, so that their creation waits.
func (r claimRepairs) deleted(now time.Time) map[string]bool {
	out := map[string]bool{}
	for name, last := range r {
		if last.verb == createClaim && now.Before(last.free) {
			out[name] = true
		}
	}
	return out
}
