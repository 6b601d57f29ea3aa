// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// claimTime is how long the first gateway of a shard has to claim it. Then the next one is the first. It includes the
// time until the zones have the rows of the shard: ovn-northd may take 16 s for the last of 10,000 Services. The
// gateway comes after the others for missedTime then: the next attempt would be another outage of claimTime. Meanwhile
// the report of a dead agent expires.
const (
	claimTime  = world.ProgramWait
	missedTime = 15 * time.Minute
)

// Observe adds what the agents report to a snapshot: the active gateway of each shard, the bridges of the nodes, zones
// that can't be programmed as faults of their nodes, which addresses the zones of their active gateways have applied,
// which of these have logical flows in the wrong routers there, and which addresses are published.
func (p *Publisher) Observe(w *world.Snapshot) {
	w.ShardStates, w.Bridges = map[world.ShardID]world.ShardState{}, map[string]world.Bridges{}
	gateways := map[world.ShardID][]string{}
	for _, d := range w.Domains {
		for index, order := range d.Gateways {
			gateways[world.ShardID{Domain: d.Name, Index: index}] = order
		}
	}
	for i, n := range w.Nodes {
		if n.Agent == nil || n.Chassis == "" {
			continue
		}
		if n.Agent.Bridges != nil {
			w.Bridges[n.Chassis] = n.Agent.Bridges
		}
		w.Nodes[i] = n.WithAgentFault()
	}
	active := p.activeGateways(w, gateways)
	addRivals(w, gateways)
	nodes := make(map[string]*world.Node, len(w.Nodes))
	for _, n := range w.Nodes {
		nodes[n.Name] = n
	}
	p.observeUnclaimed(w, nodes, gateways, active)
	for shard, order := range gateways {
		// Until a gateway has claimed the shard, the first one must have its addresses. Its Node may have been deleted.
		if active[shard] == nil && len(order) > 0 && nodes[order[0]] != nil {
			active[shard] = nodes[order[0]]
		}
		c := w.ShardStates[shard]
		c.Order = existing(nodes, order)
		w.ShardStates[shard] = c
	}
	p.observeApplied(w, active)
	w.Announced = p.published(w.ServicesToVerify())
}

// published returns the addresses in the ServicePlans of some Services, or nil before these have been read.
func (p *Publisher) published(services []world.Key) map[netip.Addr]bool {
	select {
	case <-p.synced:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[netip.Addr]bool{}
	for _, key := range services {
		o := p.objects[Name(key)]
		if o == nil || keyOf(o) != key {
			continue
		}
		for _, v := range o.Spec.VIPs {
			if addr, err := netip.ParseAddr(v.Address); err == nil {
				all[addr] = true
			}
		}
	}
	return all
}

// unclaimed is the gateway that is to claim a shard, and since when.
type unclaimed struct {
	first string
	since time.Time
}

// missedClaim is when it was noticed that a gateway had not claimed a shard, and which run of its agent that was.
type missedClaim struct{ at, started time.Time }

// observeUnclaimed records the gateways that had to claim a shard and did not within claimTime, while no other had it.
// Their agents or their zones may be dead without anything that reports it, and the others leave the shard to them as
// long as their chassis answer BFD. The record of a shard ends with its last address: if its L2Domain is deleted,
// another one of that name starts anew.
func (p *Publisher) observeUnclaimed(
	w *world.Snapshot, nodes map[string]*world.Node, gateways map[world.ShardID][]string,
	active map[world.ShardID]*world.Node,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := map[world.ShardID]unclaimed{}
	for _, o := range p.objects {
		for _, v := range o.Spec.VIPs {
			shard := shardOf(&v)
			order := gateways[shard]
			if _, seen := waiting[shard]; seen || active[shard] != nil || len(order) == 0 {
				continue
			}
			u := unclaimed{order[0], w.Now}
			if before := p.unclaimed[shard]; before.first == u.first {
				u = before
			} else {
				time.AfterFunc(claimTime, p.options.Changed)
			}
			waiting[shard] = u
			if w.Now.Sub(u.since) >= claimTime {
				p.missed[gatewayOf{u.first, shard}] = missedClaim{w.Now, startOf(nodes[u.first])}
			}
		}
	}
	p.unclaimed = waiting
	for g, m := range p.missed {
		n := active[g.shard]
		if w.Now.Sub(m.at) >= missedTime || n != nil && n.Name == g.node || len(existing(nodes, []string{g.node})) == 0 ||
			len(gateways[g.shard]) == 0 || !startOf(nodes[g.node]).Equal(m.started) {
			delete(p.missed, g)
			continue
		}
		state := w.ShardStates[g.shard]
		state.Missed = append(state.Missed, g.node)
		w.ShardStates[g.shard] = state
	}
}

// startOf returns when the agent of a node started, or the zero time.
func startOf(n *world.Node) time.Time {
	if n == nil || n.Agent == nil {
		return time.Time{}
	}
	return n.Agent.Started
}

// existing returns the nodes of an order that exist and have a chassis.
func existing(nodes map[string]*world.Node, order []string) []string {
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool {
		return nodes[name] == nil || nodes[name].Chassis == ""
	})
}

// observeApplied adds the addresses that the zones of their gateways have programmed, and the nodes of backends whose
// zones have not applied a plan for a while.
func (p *Publisher) observeApplied(w *world.Snapshot, active map[world.ShardID]*world.Node) {
	w.Applied, w.ApplyErrors = map[world.Key][]netip.Addr{}, map[world.Key]string{}
	w.Lagging = map[world.Key][]string{}
	w.Misplaced = map[netip.Addr]bool{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active, p.unapplied = active, map[string]bool{}
	before := p.awaited
	p.observeLags(w)
	for _, o := range p.objects {
		p.observePlan(w, o)
	}
	if p.awaited != before {
		p.options.Changed() // an agent may have reported while it was not awaited
	}
}

// ObserveReports adds to a snapshot that Observe has completed what has changed since, if that is only that agents have
// applied other versions of ServicePlans (their newest reports, by node; only a healthy agent may be at a lower one
// than before), and that ServicePlans were published. It returns the Services of the plans that were not applied.
func (p *Publisher) ObserveReports(w *world.Snapshot, agents map[string]*world.ZoneAgent,
	published []world.Key) []world.Key {
	if w.Applied == nil {
		return nil // Nothing has been observed yet.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for shard, n := range p.active {
		if agent := agents[n.Name]; agent != nil {
			now := *n
			now.Agent = agent
			p.active[shard] = &now
		}
	}
	for _, key := range published {
		if o := p.objects[Name(key)]; o != nil {
			p.unapplied[o.Name] = true
		} else {
			delete(w.Applied, key)
			delete(w.ApplyErrors, key)
			delete(w.Lagging, key)
		}
	}
	var keys []world.Key
	before := p.awaited
	for name := range p.unapplied {
		o := p.objects[name]
		delete(p.unapplied, name)
		if o != nil {
			p.observePlan(w, o)
			keys = append(keys, keyOf(o))
		}
	}
	if p.awaited != before {
		p.options.Changed()
	}
	return keys
}

func keyOf(o *v1alpha1.ServicePlan) world.Key {
	return world.Key{Namespace: o.Spec.Namespace, Name: o.Spec.Name}
}

// observePlan adds the addresses of a plan that the zones of their gateways have programmed. p.mu must be held.
func (p *Publisher) observePlan(w *world.Snapshot, o *v1alpha1.ServicePlan) {
	key := keyOf(o)
	delete(w.Applied, key)
	delete(w.ApplyErrors, key)
	delete(w.Lagging, key)
	if nodes := p.lagging(o); nodes != nil {
		w.Lagging[key] = nodes
	}
	for _, v := range o.Spec.VIPs {
		n := p.active[shardOf(&v)]
		addr, err := netip.ParseAddr(v.Address)
		if n == nil || n.Agent == nil || err != nil {
			continue
		}
		if !p.applied(o, key, gatewayOf{n.Name, shardOf(&v)}, n.Agent) {
			p.unapplied[o.Name] = true
			continue
		}
		if why := n.Agent.Failed[key]; why != "" {
			w.ApplyErrors[key] = fmt.Sprintf("address %s: %s", addr, why)
			continue
		}
		w.Applied[key] = append(w.Applied[key], addr)
		if n.Agent.Misplaced[addr] {
			w.Misplaced[addr] = true
		}
	}
}

// gatewayOf is a node as a gateway of a shard.
type gatewayOf struct {
	node  string
	shard world.ShardID
}

// applied reports whether the zone of a shard's gateway has applied a plan. It is enough that it once had one that
// differs from the present one in single backends, if it has claimed the shard without interruption since then, and has
// no difficulties now. p.mu must be held.
func (p *Publisher) applied(o *v1alpha1.ServicePlan, key world.Key, g gatewayOf, agent *world.ZoneAgent) bool {
	failed := agent.Failed[key] != ""
	if failed {
		delete(p.confirmed[o.Name], g)
	}
	if agent.Applied >= Version(o) {
		if p.confirmed[o.Name] == nil {
			p.confirmed[o.Name] = map[gatewayOf]time.Time{}
		}
		if !failed {
			p.confirmed[o.Name][g] = agent.Claims[g.shard]
		}
		return true
	}
	claimed, confirmed := p.confirmed[o.Name][g]
	if confirmed && claimed.Equal(agent.Claims[g.shard]) && agent.IsHealthy() {
		return true
	}
	p.awaited = max(p.awaited, Version(o))
	return false
}

func shardOf(v *v1alpha1.PlannedVIP) world.ShardID {
	return world.ShardID{Domain: v.L2Domain, Index: int(v.Shard)}
}
