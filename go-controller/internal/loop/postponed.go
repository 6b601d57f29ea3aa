// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// noticeable is how long a change must be postponed to be reported. A status that is written takes as much of the API
// server as a small change.
const noticeable = 5 * time.Second

// postponed is a plan that the dataplane does not accept before a time. A different one is tried at once: the dataplane
// may accept that.
type postponed struct {
	plan       *plan.Service
	until      time.Time
	noticeable bool
}

// postpone records that a change was postponed, and reports whether it was.
func (r *Runner) postpone(c dataplane.Change, err error) bool {
	var later dataplane.Postponed
	if !errors.As(err, &later) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	long := r.postponed[c.Key].noticeable || time.Until(later.Until) >= noticeable
	r.postponed[c.Key] = postponed{c.Want, later.Until, long}
	delete(r.retries, c.Key)
	return true
}

// waits reports whether the wanted plan of a Service is postponed.
func (r *Runner) waits(k world.Key) bool {
	p, ok := r.postponed[k]
	return ok && time.Now().Before(p.until) && plan.Equal(p.plan, r.want.plans[k])
}

// markPostponedDirty marks the Services dirty whose change has been postponed long enough. A Service that is gone
// before its first plan was applied is removed: the dataplane may have counted on it.
func (r *Runner) markPostponedDirty(now time.Time) {
	for k, p := range r.postponed {
		if !now.Before(p.until) || r.want.plans[k] == nil {
			r.dirty[k] = struct{}{}
		}
	}
}
