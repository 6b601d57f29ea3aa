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

	mu   sync.Mutex
	cond sync.Cond
	// starting is the server that is being started; nil if there is none.
	starting *server
	// running contains all servers. The value is true while a server works or may begin to without checking the lock.
	running map[*server]bool
}

// startupTimeout limits the wait for the other servers: one that hangs must not block all sessions.
const startupTimeout = time.Second

func newStartupLock() *startupLock {
	g := &startupLock{running: map[*server]bool{}}
	g.cond.L = &g.mu
	return g
}

// register is called before a server works for the first time. It returns when no other server is being started.
func (g *startupLock) register(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait(s)
}

// checkpoint is called by a server after each operation.
func (g *startupLock) checkpoint(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starting != nil {
		g.running[s] = false
		g.cond.Broadcast()
		g.wait(s)
	}
}

func (g *startupLock) wait(s *server) {
	for g.starting != nil && g.starting != s {
		g.cond.Wait()
	}
	g.running[s] = true
}

// others reports whether servers other than s work.
func (g *startupLock) others(s *server) bool {
	for other, works := range g.running {
		if works && other != s {
			return true
		}
	}
	return false
}

// runExclusive runs f while s is the only server that works.
func (g *startupLock) runExclusive(ctx context.Context, s *server, f func() error) error {
	g.starts.Lock()
	defer g.starts.Unlock()
	g.mu.Lock()
	g.starting = s
	for other := range g.running {
		if other != s {
			// An operation without effect, so that the server checks the lock.
			go func() { _, _ = other.GetBgp(ctx, &api.GetBgpRequest{}) }()
		}
	}
	late := false
	timer := time.AfterFunc(startupTimeout, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		late = true
		g.cond.Broadcast()
	})
	defer timer.Stop()
	for g.others(s) && !late {
		g.cond.Wait()
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
		g.cond.Broadcast()
	}()
	return f()
}

// timingHook makes a server check the startup lock: gobgp calls it with the duration of each operation.
type timingHook struct{ server *server }

// Observe is called at the end of each operation.
func (t timingHook) Observe(gobgp.FSMOperation, time.Duration, time.Duration) {
	t.server.startupLock.checkpoint(t.server)
}
