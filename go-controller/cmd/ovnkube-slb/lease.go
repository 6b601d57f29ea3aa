// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// elected runs work, with --leader-elect only while this process holds the lease; it is
// handed the configuration for its clients, which can't write after that. Losing the lease
// is an error, without waiting for work: the process starts anew, with nothing
// remembered. When ctx ends the lease is given up after work has returned.
func elected(ctx context.Context, o *options, config *rest.Config, work func(context.Context, *rest.Config) error) error {
	if !o.leaderElect {
		return work(ctx, config)
	}
	id, err := identity(o)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client for the lease: %w", err)
	}
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	lasting, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	lease := newTerm(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.leaseNamespace, Name: o.leaseName},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: id},
	}, o.renewDeadline, over)
	var leads atomic.Bool
	result := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lease,
		LeaseDuration:   o.leaseDuration,
		RenewDeadline:   o.renewDeadline,
		RetryPeriod:     o.retryPeriod,
		ReleaseOnCancel: true,
		Name:            o.leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				leads.Store(true)
				working, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(lasting, cancel)()
				result <- work(working, lease.guard(config))
				giveUp()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", o.leaseNamespace, o.leaseName, err)
	}
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
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
	case <-lasting.Done():
	}
	select {
	case err := <-result:
		if err != nil || ctx.Err() != nil {
			return err
		}
	default:
		if !leads.Load() {
			return nil
		}
	}
	return fmt.Errorf("lease %s/%s is lost", o.leaseNamespace, o.leaseName)
}
