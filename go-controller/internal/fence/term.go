// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrOver is why a write is not sent.
var ErrOver = errors.New("the lease may be another's by now")

// Term is the time for which this process may act as the leader. It has not begun before the first renewal.
type Term struct {
	length time.Duration
	over   context.Context
	end    context.CancelFunc

	mu sync.Mutex
	// until is when the term ends, zero before it begins.
	until time.Time
	timer *time.Timer
}

// NewTerm returns a term that lasts for length after the newest renewal was sent. Close frees its resources.
func NewTerm(length time.Duration) *Term {
	t := &Term{length: length}
	t.over, t.end = context.WithCancel(context.Background())
	return t
}

// Renewed begins the term, or extends it: a renewal that went well was sent at that time.
func (t *Term) Renewed(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = sent.Add(t.length)
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(t.until), t.end)
	} else {
		t.timer.Reset(time.Until(t.until))
	}
}

// Lost ends a term that has begun.
func (t *Term) Lost() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.until.IsZero() {
		t.end()
	}
}

// Close ends the term, also one that has not begun.
func (t *Term) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.end()
}

// Over ends with the term. Its error says nothing.
func (t *Term) Over() context.Context { return t.over }

// Check returns ErrOver unless the term has begun and goes on. The wall clock has a say, too: in a virtual
// machine that stood still the monotonic one may have done so with it.
func (t *Term) Check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.over.Err() != nil || !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0)) {
		return ErrOver
	}
	return nil
}
