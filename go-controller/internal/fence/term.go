// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrExpired is returned for a write that is not sent because the term is over.
var ErrExpired = errors.New("the leader's term has expired")

// Term is the time for which this process may act as the leader. It does not begin before the first renewal.
type Term struct {
	length time.Duration
	over   context.Context
	end    context.CancelFunc

	mu sync.Mutex
	// until is when the term ends. It is zero before the term begins.
	until time.Time
	timer *time.Timer
}

// NewTerm returns a term that ends length after the newest renewal was sent. Close releases its resources.
func NewTerm(length time.Duration) *Term {
	t := &Term{length: length}
	t.over, t.end = context.WithCancel(context.Background())
	return t
}

// Renew begins or extends the term. sent is when a successful renewal was sent.
func (t *Term) Renew(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = sent.Add(t.length)
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(t.until), t.end)
	} else {
		t.timer.Reset(time.Until(t.until))
	}
}

// Expire ends a term that has begun.
func (t *Term) Expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.until.IsZero() {
		t.end()
	}
}

// Close ends the term, even if it has not begun.
func (t *Term) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.end()
}

// Context returns a context that is done when the term ends. Its error has no meaning.
func (t *Term) Context() context.Context { return t.over }

// Check returns ErrExpired unless the term has begun and has not ended. It also checks the wall clock: in a virtual
// machine that was paused, the monotonic clock may have stopped too.
func (t *Term) Check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.over.Err() != nil || !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0)) {
		return ErrExpired
	}
	return nil
}
