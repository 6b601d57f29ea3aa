// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/fence"
)

// paper is a fake lease that accepts every write.
type paper struct {
	resourcelock.Interface
	holder string
	took   time.Duration // duration of a write
}

func (p *paper) Identity() string { return "me" }

func (p *paper) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: p.holder, LeaseDurationSeconds: 15}, []byte(p.holder), nil
}

func (p *paper) Describe() string { return "paper" }

func (p *paper) RecordEvent(string) {}

func nothing() error { return nil }

func (p *paper) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	<-time.After(p.took)
	p.holder = r.HolderIdentity
	return nil
}

func TestTermEnds(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for name, c := range map[string]struct {
		during func(*testing.T, *termLock, *paper)
		lasts  time.Duration
	}{
		"after its length": {func(*testing.T, *termLock, *paper) {}, 10 * time.Second},
		"counted from when the renewal was sent": {func(t *testing.T, m *termLock, p *paper) {
			p.took = 4 * time.Second
			renewed(t, m, mine)
		}, 10 * time.Second},
		"later when it is renewed": {func(t *testing.T, m *termLock, _ *paper) {
			<-time.After(6 * time.Second)
			renewed(t, m, mine)
		}, 16 * time.Second},
		"when another is seen": {func(t *testing.T, m *termLock, p *paper) {
			<-time.After(time.Second)
			p.holder = "other"
			if _, _, err := m.Get(t.Context()); err != nil {
				t.Error(err)
			}
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &paper{holder: "other"}
				m := &termLock{Interface: p, term: fence.NewTerm(10 * time.Second), missing: nothing}
				over := m.term.Context()
				if _, _, err := m.Get(t.Context()); err != nil || over.Err() != nil {
					t.Fatalf("the lease is another's before the term: %v, %v", err, over.Err())
				}
				start := time.Now()
				renewed(t, m, mine)
				if err := m.term.Check(); err != nil {
					t.Errorf("in the term: %v", err)
				}
				c.during(t, m, p)
				<-over.Done()
				if lasted := time.Since(start); lasted != c.lasts {
					t.Errorf("lasted %s, want %s", lasted, c.lasts)
				}
				if err := m.term.Check(); !errors.Is(err, fence.ErrExpired) {
					t.Errorf("after the term: %v", err)
				}
				p.holder = "other"
				if err := m.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, fence.ErrExpired) ||
					p.holder != "other" {
					t.Errorf("gave up the lease of %q: %v", p.holder, err)
				}
			})
		})
	}
}

func renewed(t *testing.T, m *termLock, r resourcelock.LeaderElectionRecord) {
	t.Helper()
	if err := m.Update(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// sent is a transport that responds 200 to every request.
type sent struct{}

func (sent) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestNoWritesWithoutLease(t *testing.T) {
	m := &termLock{Interface: &paper{}, term: fence.NewTerm(time.Minute), missing: nothing}
	config := m.term.WrapConfig(&rest.Config{Host: "https://192.0.2.1"})
	transport := config.WrapTransport(sent{})
	ask := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, config.Host, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	if err := ask(http.MethodPut); !errors.Is(err, fence.ErrExpired) {
		t.Errorf("PUT without the lease: %v", err)
	}
	if err := ask(http.MethodGet); err != nil {
		t.Errorf("GET without the lease: %v", err)
	}
	renewed(t, m, resourcelock.LeaderElectionRecord{HolderIdentity: "me"})
	if err := ask(http.MethodPut); err != nil {
		t.Errorf("PUT with the lease: %v", err)
	}
}
