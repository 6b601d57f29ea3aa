// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errTermOver is why a write is not sent any more.
var errTermOver = errors.New("the lease may be another's by now")

// term is the time for which this process may act as the leader. It is counted from the
// moment when the last renewal was sent, so it ends before anybody else may lead, and it
// ends at once when the lease turns out to be another's.
//
// client-go's election alone does not see to that: a process that stood still for longer
// than the lease goes on for another renew deadline, beside the leader that came
// meanwhile, and may then give up that one's lease.
type term struct {
	resourcelock.Interface
	length time.Duration

	mu sync.Mutex
	// until is when the term ends, zero before the first one.
	until time.Time
	alarm *time.Timer
	over  context.CancelFunc
	ended bool
}

// newTerm returns a term that calls over once when it has ended.
func newTerm(lock resourcelock.Interface, length time.Duration, over context.CancelFunc) *term {
	return &term{Interface: lock, length: length, over: over}
}

// Get reads the lease.
func (t *term) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := t.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != t.Identity() {
		t.end()
	}
	return record, raw, err
}

// Create takes a lease that nobody ever had.
func (t *term) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	err := t.Interface.Create(ctx, r)
	if err == nil {
		t.renew(sent)
	}
	return err
}

// Update takes the lease, renews it or gives it up.
func (t *term) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity != t.Identity() {
		if err := t.check(); err != nil {
			return fmt.Errorf("give up the lease: %w", err)
		}
		return t.Interface.Update(ctx, r)
	}
	sent := time.Now()
	err := t.Interface.Update(ctx, r)
	if err == nil {
		t.renew(sent)
	}
	return err
}

func (t *term) renew(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = sent.Add(t.length)
	if t.alarm == nil {
		t.alarm = time.AfterFunc(time.Until(t.until), t.end)
	} else {
		t.alarm.Reset(time.Until(t.until))
	}
}

func (t *term) end() {
	t.mu.Lock()
	began := !t.until.IsZero()
	t.ended = t.ended || began
	t.mu.Unlock()
	if began {
		t.over()
	}
}

// check returns an error unless the term goes on. The wall clock has a say, too: in a
// virtual machine that stood still the monotonic one may have done so with it.
func (t *term) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.ended || !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0)) {
		return errTermOver
	}
	return nil
}

// guard returns the configuration for clients that write nothing after the term.
func (t *term) guard(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &guarded{next, t} })
	return config
}

type guarded struct {
	next http.RoundTripper
	term *term
}

// RoundTrip sends a request unless it comes too late to write.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if err := g.term.check(); err != nil {
			return nil, fmt.Errorf("not sent: %w", err)
		}
	}
	return g.next.RoundTrip(r)
}
