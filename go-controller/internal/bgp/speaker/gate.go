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

// gate lets a server start while no other one works: StartBgp writes variables of gobgp's that
// all servers read (v3.37.0). It writes what is there already, but a data race it is.
//
// A server passes the gate after each piece of work. The gate is shut for less than a
// millisecond, and sessions have goroutines of their own: none of them misses a keepalive.
type gate struct {
	// starts is held by the one who shuts the gate.
	starts sync.Mutex

	mu    sync.Mutex
	moved sync.Cond
	// starting is for whom the gate is shut; nil if it is open.
	starting *server
	// within has all servers, and tells of each whether it works, or begins to without a look
	// at the gate.
	within map[*server]bool
}

// patience bounds the wait for the others: one that hangs must not hold up all sessions.
const patience = time.Second

func newGate() *gate {
	g := &gate{within: map[*server]bool{}}
	g.moved.L = &g.mu
	return g
}

// enter is called before a server works for the first time, and lets it in when the gate is open.
func (g *gate) enter(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait(s)
}

// pass is called by a server after each piece of work.
func (g *gate) pass(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starting != nil {
		g.within[s] = false
		g.moved.Broadcast()
		g.wait(s)
	}
}

func (g *gate) wait(s *server) {
	for g.starting != nil && g.starting != s {
		g.moved.Wait()
	}
	g.within[s] = true
}

// others tells whether servers other than s work.
func (g *gate) others(s *server) bool {
	for other, works := range g.within {
		if works && other != s {
			return true
		}
	}
	return false
}

// alone runs f, in which s works and no other server.
func (g *gate) alone(ctx context.Context, s *server, f func() error) error {
	g.starts.Lock()
	defer g.starts.Unlock()
	g.mu.Lock()
	g.starting = s
	for other := range g.within {
		if other != s {
			// Work that is none, so that it passes.
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
		klog.FromContext(ctx).Info("A BGP server hangs; another one is started beside it")
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.starting = nil
		g.moved.Broadcast()
	}()
	return f()
}

// turnstile is how a server passes: gobgp times each piece of work, and tells.
type turnstile struct{ server *server }

// Observe is called at the end of a piece of work.
func (t turnstile) Observe(gobgp.FSMOperation, time.Duration, time.Duration) {
	t.server.gate.pass(t.server)
}
