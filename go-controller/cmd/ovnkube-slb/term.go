// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/fence"
)

// termLock is a lease that extends the holder's term with each renewal.
//
// client-go's leader election alone does not ensure this. A process that was suspended for longer than the lease
// duration continues to lead for another renew deadline, at the same time as the new leader, and may then release the
// new leader's lease.
type termLock struct {
	resourcelock.Interface
	term *fence.Term
	// missing returns an error that describes what prevents this process from acquiring the lease, nil for nothing. The
	// process may still renew a lease that it has.
	missing func() error
	has     bool
}

// Get reads the lease. It ends the term if another process holds the lease.
func (l *termLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.term.Expire()
	}
	return record, raw, err
}

// Create acquires a lease that does not exist yet.
func (l *termLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.take(func() error { return l.Interface.Create(ctx, r) })
}

// Update acquires, renews or releases the lease.
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
		l.term.Renew(sent)
	}
	return err
}
