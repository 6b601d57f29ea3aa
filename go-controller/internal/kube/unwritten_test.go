// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A status that the API server refuses is unwritten after a minute, also if the decision changes meanwhile. One that is
// no longer desired is not.
func TestRefusedStatusIsUnwrittenAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := world.Key{Namespace: "shop", Name: "web"}
		facts, _ := counted()
		facts.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
		w := NewServiceWriter(failing{}, facts, &Events{}, func(string, error) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		want := func(addr string) *status.Service {
			s := allocated(addr)
			s.UID = "1"
			w.Set(map[world.Key]*status.Service{key: s})
			return s
		}
		want("10.0.0.1")
		<-time.After(50 * time.Second)
		second := want("10.0.0.2")
		if n := len(w.Unwritten()); n != 0 {
			t.Errorf("%d statuses are unwritten after 50 s", n)
		}
		<-time.After(20 * time.Second)
		if list := w.Unwritten(); len(list) != 1 || list[0] != second {
			t.Errorf("after 70 s: %v, want the latest status", list)
		}
		w.Set(nil)
		if n := len(w.Unwritten()); n != 0 {
			t.Errorf("%d statuses are unwritten and none is desired", n)
		}
		cancel()
		<-ended
	})
}

// A status that changes before the informer shows the last write of it is written all the same, and so is the last one.
func TestStatusThatChangesAllTheTimeIsNotUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := world.Key{Namespace: "shop", Name: "web"}
		facts, _ := counted()
		facts.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
		server := &slow{start: time.Now(), begun: map[string]bool{}, done: map[string]time.Duration{}}
		w := NewServiceWriter(server, facts, &Events{}, func(string, error) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		for i := range 240 {
			s := allocated([]string{"10.0.0.1", "10.0.0.2"}[i%2])
			s.UID = "1"
			w.Set(map[world.Key]*status.Service{key: s})
			<-time.After(500 * time.Millisecond)
		}
		<-time.After(10 * time.Minute) // The informer never shows what was written.
		if n := len(w.Unwritten()); n != 0 || server.writes == 0 {
			t.Errorf("%d statuses are unwritten after %d writes", n, server.writes)
		}
		cancel()
		<-ended
	})
}

func TestFailedWritesAreLoggedOncePerCauseAndMinute(t *testing.T) {
	var l failureLog
	lines, skipped, now := 0, 0, time.Unix(1000, 0)
	for range 150 {
		if n, allowed := l.allow(errors.New("no leader"), now); allowed {
			lines, skipped = lines+1, n
		}
		now = now.Add(failureLogPause / 100)
	}
	if lines != 2 || skipped != 99 {
		t.Errorf("%d lines in %s, the last one after %d failures that were not logged; want 2 and 99", lines,
			failureLogPause*3/2, skipped)
	}
	if _, allowed := l.allow(apierrors.NewInternalError(errors.New("failed calling webhook")), now); !allowed {
		t.Error("another cause is not logged")
	}
}
