// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/fence"
)

// termLock is a lease whose holder's term follows its renewals.
//
// client-go's election alone does not see to that: a process that stood still for longer
// than the lease goes on for another renew deadline, beside the leader that came
// meanwhile, and may then give up that one's lease.
type termLock struct {
	resourcelock.Interface
	term *fence.Term
	// missing says what keeps this process from taking the lease, nil for nothing. It may go on renewing one that it has.
	missing func() error
	has     bool
}

// Get reads the lease.
func (l *termLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.term.Lost()
	}
	return record, raw, err
}

// Create takes a lease that no process ever had.
func (l *termLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.take(func() error { return l.Interface.Create(ctx, r) })
}

// Update takes the lease, renews it or gives it up.
func (l *termLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity != l.Identity() {
		if err := l.term.Check(); err != nil {
			return fmt.Errorf("give up the lease: %w", err)
		}
		return l.Interface.Update(ctx, r)
	}
	return l.take(func() error { return l.Interface.Update(ctx, r) })
}

func (l *termLock) take(write func() error) error {
	if !l.has {
		if err := l.missing(); err != nil {
			return fmt.Errorf("this replica can't lead: %w", err)
		}
	}
	sent := time.Now()
	err := write()
	if err == nil {
		l.has = true
		l.term.Renewed(sent)
	}
	return err
}
