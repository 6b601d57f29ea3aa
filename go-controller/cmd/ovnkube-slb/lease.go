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

// connectivityPause is the interval between checks of a leader's database connections.
const connectivityPause = 250 * time.Millisecond

// election runs work in one replica at a time. Only a replica that has what a leader needs takes the lease.
type election struct {
	*options
	config *rest.Config
	// missing returns an error that describes what this replica lacks to lead, nil for nothing. It checks the standby
	// until work has started, and work afterwards.
	missing func() error
	// work receives the configuration for its clients, and the fence for all its other writes.
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

// run starts work once, when this process acquires the lease. After the lease is lost, work cannot write. Losing the
// lease is an error, and run does not wait for work to return: the process restarts without any state. It is also an
// error if the leader lacks what it needs for too long. When ctx ends, run releases the lease after work has returned.
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

// campaign competes for the lease until ctx ends, and leads once it has acquired the lease. It acquires the lease only
// while this replica can lead, but observes the lease all the time. Otherwise the time for which the holder has not
// renewed would start at zero again after this replica lacked a database for a second.
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
				defer context.AfterFunc(term.Context(), func() { cancel(nil) })()
				go e.depend(working, cancel)
				err := e.work(working, term.WrapConfig(e.config), term.Check)
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
	case <-term.Context().Done():
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

// errUnfit is the reason why a leader that lacks what it needs releases its lease.
var errUnfit = errors.New("the lease is given up for a replica that can lead")

// depend calls end when missing has returned an error for databaseTimeout.
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
