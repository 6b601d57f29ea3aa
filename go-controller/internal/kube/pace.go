// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A node or a router can change the message of all Services that it serves as often as it likes, for example by the
// reasons that it gives. textBurst changes of a message alone are written at once, further ones one per textPause.
const (
	textBurst = 10
	textPause = time.Minute
)

// pace limits how often the status of one Service is written for its message alone. The change that waits, if any, is
// written at due, with the message of that time.
type pace struct {
	limit *rate.Limiter
	due   time.Time
}

// onlyText reports whether two statuses differ only in the message of the condition Announced.
func onlyText(before, s *ServiceStatus) bool {
	if before.Announced == nil || s.Announced == nil {
		return false
	}
	same := *before
	announced := *before.Announced
	announced.Message = s.Announced.Message
	same.Announced = &announced
	return same.equal(s)
}

// textDelay returns how long a new message of a Service must wait.
func (w *ServiceWriter) textDelay(key world.Key) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, p := time.Now(), w.paces[key]
	if p == nil {
		p = &pace{limit: rate.NewLimiter(rate.Every(textPause), textBurst)}
		w.paces[key] = p
	}
	if !now.Before(p.due) {
		p.due = now.Add(p.limit.ReserveN(now, 1).DelayFrom(now))
	}
	return p.due.Sub(now)
}
