// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// lagTime is how long a zone may be without progress in applying ServicePlans until it counts as lagging. A rolling
// update of the agents must not write the statuses of all Services.
const lagTime = world.ProgramWait

// lag is what a zone has not applied.
type lag struct {
	// applied is the highest version that its agent has reported, and since is when that was first found to be too low.
	// An agent that has been restarted applies everything again, and reports less until then, but the rows are there.
	applied uint64
	since   time.Time
	// from is the lowest version that the zone must have applied and has not, and to the highest; 0 if there is none.
	from, to uint64
	// lasting is set once that has lasted for lagTime, or the agent itself reports that the zone can't be changed, until
	// the zone has applied all that it lacked. failed are the plans that it could not apply then.
	lasting bool
	failed  map[world.Key]string
}

// observeLags finds the zones that do not apply what is published. An agent reports what it has applied of the plans
// with an address in a shard of which its node is a gateway: if it makes no progress with those, it makes none with
// others. If it reports that its zone can't be changed, its report is about all plans. p.mu must be held.
func (p *Publisher) observeLags(w *world.Snapshot, gateways map[world.ShardID][]string) {
	lags := make(map[string]*lag, len(w.Nodes))
	for _, n := range w.Nodes {
		if n.Agent == nil || n.Chassis == "" {
			continue
		}
		is := &lag{applied: n.Agent.Applied}
		if was := p.lags[n.Name]; was != nil && was.applied >= is.applied {
			is.applied, is.since = was.applied, was.since
		}
		lags[n.Name] = is
	}
	for _, o := range p.objects {
		version := Version(o)
		for i := range o.Spec.VIPs {
			for _, node := range gateways[shardOf(&o.Spec.VIPs[i])] {
				if is := lags[node]; is != nil && version > is.applied {
					is.from, is.to = min(cmp.Or(is.from, version), version), max(is.to, version)
				}
			}
		}
	}
	var due time.Time
	for _, n := range w.Nodes {
		is, was := lags[n.Name], p.lags[n.Name]
		switch {
		case is == nil:
			continue
		case n.Agent.Unwritable != "":
			is.from, is.failed, is.lasting = is.applied+1, n.Agent.Failed, true
			continue
		case is.from == 0:
			is.since = time.Time{}
			continue
		case is.since.IsZero():
			is.since = w.Now
		}
		is.lasting = w.Now.Sub(is.since) >= lagTime || was != nil && was.lasting && is.from <= was.to
		if !is.lasting {
			due = world.Earliest(due, is.since.Add(lagTime))
		}
	}
	p.lags = lags
	p.anyLags = slices.ContainsFunc(w.Nodes, func(n *world.Node) bool {
		return lags[n.Name] != nil && lags[n.Name].lasting
	})
	// One check at a time is enough: whatever begins later is due later.
	if !due.IsZero() && !w.Now.Before(p.lagCheck) {
		p.lagCheck = due
		time.AfterFunc(due.Sub(w.Now), p.options.Changed)
	}
}

// lagging returns the nodes with backends of a plan whose zones have not applied it for a while, sorted. p.mu must be
// held.
func (p *Publisher) lagging(o *v1alpha1.ServicePlan) []string {
	if !p.anyLags { // A pass must not look at all backends for nothing.
		return nil
	}
	version, nodes := Version(o), map[string]bool{}
	for i := range o.Spec.Listeners {
		for _, b := range o.Spec.Listeners[i].Backends {
			is := p.lags[b.NodeName]
			if is != nil && is.lasting && (version >= is.from || is.failed[keyOf(o)] != "") {
				nodes[b.NodeName] = true
			}
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	for node := range nodes {
		p.awaited = max(p.awaited, p.lags[node].applied+1) // Only then its next report is noticed.
	}
	return slices.Sorted(maps.Keys(nodes))
}

// catchingUp reports whether one of these agents has applied more than when its zone was found to lag.
func (p *Publisher) catchingUp(agents map[string]*world.ZoneAgent) bool {
	for node, agent := range agents {
		if is := p.lags[node]; is != nil && is.lasting && agent != nil && agent.Applied > is.applied {
			return true
		}
	}
	return false
}
