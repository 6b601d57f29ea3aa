// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/fence"
)

// connectivityPause is the time between two looks whether a leader has what it needs.
const connectivityPause = 250 * time.Millisecond

// election lets one replica at a time work: one that has what a leader needs.
type election struct {
	*options
	config *rest.Config
	// missing says what a leader would lack here, nil for nothing. It is about the standby as long as work has not
	// begun, and about work then.
	missing func() error
	// work is handed the configuration for its clients and the fence for what else it writes.
	work func(ctx context.Context, config *rest.Config, fence func() error) error
	// health reports whether the holder renews its lease in time.
	health *leaderelection.HealthzAdaptor
}

// The stages of a campaign. A candidate becomes a leader or withdraws, never both.
const (
	candidate int32 = iota
	withdrawn
	leader
)

// run lets work begin once, while this process holds the lease; it can't write after that. Losing the lease
// is an error, without waiting for work: the process starts anew, with nothing remembered. So is the lack of
// what a leader needs for too long. When ctx ends the lease is given up after work has returned.
func (e *election) run(ctx context.Context) error {
	if !e.leaderElect {
		return e.work(ctx, e.config, nil)
	}
	id, err := identity(e.options)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		return fmt.Errorf("client for the lease: %w", err)
	}
	return e.campaign(ctx, &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.leaseNamespace, Name: e.leaseName},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: id},
	})
}

// campaign competes for the lease until ctx ends, and leads once it has it. It takes the lease only while this replica
// could lead, but follows it all the time: how long a holder has been silent must not count anew after a lack of a
// second.
func (e *election) campaign(ctx context.Context, lock resourcelock.Interface) error {
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	term := fence.NewTerm(e.renewDeadline)
	defer term.Close()
	var stage atomic.Int32
	result := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            &termLock{Interface: lock, term: term, missing: e.missing},
		LeaseDuration:   e.leaseDuration,
		RenewDeadline:   e.renewDeadline,
		RetryPeriod:     e.retryPeriod,
		ReleaseOnCancel: true,
		Name:            e.leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				if !stage.CompareAndSwap(candidate, leader) {
					return
				}
				working, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				defer context.AfterFunc(term.Over(), func() { cancel(nil) })()
				go e.depend(working, cancel)
				err := e.work(working, term.Guard(e.config), term.Check)
				if cause := context.Cause(working); errors.Is(cause, errUnfit) {
					err = cause
				}
				result <- err
				giveUp()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", e.leaseNamespace, e.leaseName, err)
	}
	e.health.SetLeaderElection(elector)
	defer context.AfterFunc(ctx, func() {
		if stage.CompareAndSwap(candidate, withdrawn) {
			giveUp()
		}
	})()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		elector.Run(electing)
	}()
	select {
	case <-stopped:
	case <-term.Over().Done():
	}
	select {
	case err := <-result:
		if err != nil || ctx.Err() != nil {
			return err
		}
	default:
		if stage.Load() == withdrawn {
			<-stopped
			return nil
		}
	}
	return fmt.Errorf("lease %s/%s is lost", e.leaseNamespace, e.leaseName)
}

// errUnfit is why a leader gives up its lease.
var errUnfit = errors.New("the lease is given up for a replica that can lead")

// depend ends work that has lacked what it needs for too long.
func (e *election) depend(ctx context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(connectivityPause)
	defer ticker.Stop()
	var since time.Time
	for {
		why := e.missing()
		switch {
		case why == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= e.databaseTimeout:
			end(fmt.Errorf("%w: for %s, %w", errUnfit, e.databaseTimeout, why))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
