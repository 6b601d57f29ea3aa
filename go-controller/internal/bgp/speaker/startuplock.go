// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	api "github.com/osrg/gobgp/v3/api"
	gobgp "github.com/osrg/gobgp/v3/pkg/server"
)

// startupLock lets a server start while no other one works: StartBgp of gobgp v3.37.0 writes variables that all servers
// read. It writes the values that they already have, but this is a data race.
//
// A server checks the lock after each operation. The lock is held for less than a millisecond, and sessions have
// goroutines of their own, so no session misses a KEEPALIVE.
type startupLock struct {
	// starts is held by the goroutine that starts a server.
	starts sync.Mutex

	mu    sync.Mutex
	moved sync.Cond
	// starting is the server that is being started; nil if there is none.
	starting *server
	// within contains all servers. The value is true while a server works or may begin to without checking the lock.
	within map[*server]bool
}

// patience limits the wait for the other servers: one that hangs must not block all sessions.
const patience = time.Second

func newStartupLock() *startupLock {
	g := &startupLock{within: map[*server]bool{}}
	g.moved.L = &g.mu
	return g
}

// enter is called before a server works for the first time. It returns when no other server is being started.
func (g *startupLock) enter(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait(s)
}

// pass is called by a server after each operation.
func (g *startupLock) pass(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starting != nil {
		g.within[s] = false
		g.moved.Broadcast()
		g.wait(s)
	}
}

func (g *startupLock) wait(s *server) {
	for g.starting != nil && g.starting != s {
		g.moved.Wait()
	}
	g.within[s] = true
}

// others reports whether servers other than s work.
func (g *startupLock) others(s *server) bool {
	for other, works := range g.within {
		if works && other != s {
			return true
		}
	}
	return false
}

// alone runs f while s is the only server that works.
func (g *startupLock) alone(ctx context.Context, s *server, f func() error) error {
	g.starts.Lock()
	defer g.starts.Unlock()
	g.mu.Lock()
	g.starting = s
	for other := range g.within {
		if other != s {
			// An operation without effect, so that the server checks the lock.
			go func() { _, _ = other.GetBgp(ctx, &api.GetBgpRequest{}) }()
		}
	}
	late := false
	timer := time.AfterFunc(patience, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		late = true
		g.moved.Broadcast()
	})
	defer timer.Stop()
	for g.others(s) && !late {
		g.moved.Wait()
	}
	hangs := late
	g.mu.Unlock()
	if hangs {
		klog.FromContext(ctx).Info("Starting a BGP server although another one does not respond")
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.starting = nil
		g.moved.Broadcast()
	}()
	return f()
}

// dialSemaphore makes a server check the startup lock: gobgp calls it with the duration of each operation.
type dialSemaphore struct{ server *server }

// Observe is called at the end of each operation.
func (t dialSemaphore) Observe(gobgp.FSMOperation, time.Duration, time.Duration) {
	t.server.startupLock.pass(t.server)
}
