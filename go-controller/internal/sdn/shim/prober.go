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

// prober checks the health of the agents of gateways.
type prober struct {
	changed func()
	// failed is called with the fingerprint of the failed addresses in each answer of an agent that is well.
	failed func(node, fingerprint string)
	dial   dialer

	mu     sync.Mutex
	ctx    context.Context // context of run, used for health checks
	probes map[string]*probe
	// lost maps each lost node to the reason.
	lost map[string]string
}

// probe checks the health of one agent.
type probe struct {
	at   netip.AddrPort
	stop context.CancelFunc
}

func newProber(changed func(), failed func(node, fingerprint string)) *prober {
	return &prober{changed: changed, failed: failed, dial: dialTCP, probes: map[string]*probe{}, lost: map[string]string{}}
}

// run allows health checks until the context ends.
func (p *prober) run(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	p.changed()
	<-ctx.Done()
	p.watch(nil)
}

// watch replaces the set of agents to check, by node. The state of all other agents is discarded.
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

// follow checks the health of one agent until the context ends.
func (p *prober) follow(ctx context.Context, node string, at netip.AddrPort) {
	var s state
	for {
		start := time.Now()
		heartbeat, why, failed := p.dial.ask(ctx, at)
		if ctx.Err() != nil {
			return
		}
		before := s.lost
		wait := s.observe(time.Now(), heartbeat, why)
		if s.lost != before {
			p.notify(ctx, node, s.lost)
		}
		if failed != "" {
			p.failed(node, failed)
		}
		// The interval is measured from start to start, regardless of how long the answer took.
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(wait-time.Since(start), time.Millisecond)):
		}
	}
}

func (p *prober) notify(ctx context.Context, node, why string) {
	p.mu.Lock()
	if ctx.Err() != nil {
		p.mu.Unlock()
		return
	}
	if why == "" {
		klog.InfoS("Node is reachable again", "node", node)
		delete(p.lost, node)
	} else {
		klog.InfoS("Node is unreachable", "node", node, "why", why)
		p.lost[node] = why
	}
	p.mu.Unlock()
	p.changed()
}

// losses returns the lost nodes and the reasons.
func (p *prober) losses() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.lost)
}
