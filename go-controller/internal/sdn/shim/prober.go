// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// prober asks the agents of gateways for their health.
type prober struct {
	changed func()
	ask     func(ctx context.Context, at netip.AddrPort) (pulse, string)

	mu     sync.Mutex
	ctx    context.Context // that of run, in which questions are asked
	probes map[string]*probe
	// lost are the nodes that are, and why.
	lost map[string]string
}

// probe asks one agent.
type probe struct {
	at   netip.AddrPort
	stop context.CancelFunc
}

func newProber(changed func()) *prober {
	return &prober{changed: changed, ask: ask, probes: map[string]*probe{}, lost: map[string]string{}}
}

// run allows questions until the context ends.
func (p *prober) run(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	p.changed()
	<-ctx.Done()
	p.watch(nil)
}

// watch replaces the agents that are asked, by node. What is known of others is forgotten.
func (p *prober) watch(agents map[string]netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return
	}
	for node, probe := range p.probes {
		if agents[node] != probe.at {
			probe.stop()
			delete(p.probes, node)
			delete(p.lost, node)
		}
	}
	for node, at := range agents {
		if p.probes[node] == nil {
			ctx, stop := context.WithCancel(p.ctx)
			p.probes[node] = &probe{at, stop}
			go p.follow(ctx, node, at)
		}
	}
}

// follow asks one agent until the context ends.
func (p *prober) follow(ctx context.Context, node string, at netip.AddrPort) {
	var s state
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		pulse, why := p.ask(ctx, at)
		if ctx.Err() != nil {
			return
		}
		before := s.lost
		wait := s.feel(time.Now(), pulse, why)
		// From question to question, whatever the answer took.
		timer.Reset(max(wait-time.Since(start), time.Millisecond))
		if s.lost != before {
			p.tell(ctx, node, s.lost)
		}
	}
}

func (p *prober) tell(ctx context.Context, node, why string) {
	p.mu.Lock()
	if ctx.Err() != nil {
		p.mu.Unlock()
		return
	}
	if why == "" {
		klog.InfoS("The node is back", "node", node)
		delete(p.lost, node)
	} else {
		klog.InfoS("The node is lost", "node", node, "why", why)
		p.lost[node] = why
	}
	p.mu.Unlock()
	p.changed()
}

// losses are the nodes that are lost, and why.
func (p *prober) losses() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.lost)
}
