// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// sight records the Services that a watcher has observed. It runs in all measurements, including those of the floor, so
// that its cost is the same in all of them.
type sight struct {
	mu sync.Mutex
	// at has the time at which each Service with an address was first observed with it.
	at map[string]time.Time
	// last is the time at which an address was last assigned.
	last    time.Time
	changed chan struct{} // closed on each change
}

// watchServices watches until ctx is done.
func watchServices(ctx context.Context, client kubernetes.Interface) (*sight, error) {
	s := &sight{at: map[string]time.Time{}, changed: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Services().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.see(o, true) },
		UpdateFunc: func(_, now any) { s.see(now, true) },
		DeleteFunc: func(o any) { s.see(o, false) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, ctx.Err()
	}
	return s, nil
}

func (s *sight) see(o any, exists bool) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	service, ok := o.(*corev1.Service)
	if !ok {
		return
	}
	now := time.Now()
	served := exists && len(service.Status.LoadBalancer.Ingress) > 0
	if _, was := s.at[service.Name]; was == served { // only this goroutine writes
		return
	}
	s.change(func() {
		if served {
			s.at[service.Name], s.last = now, now
		} else {
			delete(s.at, service.Name)
		}
	})
}

func (s *sight) change(by func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by()
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until met returns true. It calls met with the lock held.
func (s *sight) until(ctx context.Context, what string, met func() bool) (time.Time, error) {
	for {
		s.mu.Lock()
		done, last, n, changed := met(), s.last, len(s.at), s.changed
		s.mu.Unlock()
		if done {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("wait for %s, %d Services have addresses: %w", what, n, ctx.Err())
		case <-changed:
		}
	}
}

// served returns the time at which a Service was first observed with an address.
func (s *sight) served(ctx context.Context, name string) (at time.Time, err error) {
	_, err = s.until(ctx, "an address of "+name, func() bool {
		at = s.at[name]
		return !at.IsZero()
	})
	return at, err
}

// allServed returns the time at which the last of n Services got its address.
func (s *sight) allServed(ctx context.Context, n int) (time.Time, error) {
	return s.until(ctx, fmt.Sprintf("addresses of %d Services", n), func() bool { return len(s.at) == n })
}

func (s *sight) noneServed(ctx context.Context) error {
	_, err := s.until(ctx, "no address", func() bool { return len(s.at) == 0 })
	return err
}
