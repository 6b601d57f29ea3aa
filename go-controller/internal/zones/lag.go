// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// lagTime is how long a zone may be without progress in applying ServicePlans, in addition to the time between two
// reports, until it counts as lagging. A rolling update of the agents must not write the statuses of all Services.
const lagTime = world.ProgramWait

// ReportInterval returns the minimum time between two reports of a node only because its zone has applied plans with
// backends there. One change may concern all nodes: together they write 7 Leases per second at most, as many as quiet
// ones are renewed in a cluster of 2,000 nodes.
func ReportInterval(nodes int) time.Duration {
	return min(max(time.Duration(nodes)*150*time.Millisecond, 10*time.Second), 5*time.Minute)
}

// lag is what a zone has not applied of the plans with backends on its node.
type lag struct {
	// applied is the highest version that its agent has reported, and since is when that was first found to be too low.
	// An agent that has been restarted applies everything again, and reports less until then, but the rows are there.
	applied uint64
	since   time.Time
	// until is the newest version as of since. What the zone lacked may be gone before it is too late for it, and what
	// comes later has time of its own.
	until uint64
	// lasting is set once that has lasted for too long, or the agent itself reports that the zone can't be changed. It
	// stays until the zone has applied all that it lacked then, which is up to version to.
	lasting bool
	to      uint64
}

// observeLags finds the zones that do not apply what is published with backends on their nodes. p.mu must be held.
func (p *Publisher) observeLags(w *world.Snapshot) {
	lags := make(map[string]*lag, len(w.Nodes))
	limit := lagTime + ReportInterval(len(w.Nodes))
	for _, n := range w.Nodes {
		if n.Agent == nil || n.Chassis == "" {
			continue
		}
		is := &lag{applied: n.Agent.AppliedHere}
		if was := p.lags[n.Name]; was != nil {
			is.lasting, is.to = was.lasting, was.to
			if was.applied >= is.applied {
				is.applied, is.since, is.until = was.applied, was.since, was.until
			}
		}
		lags[n.Name] = is
	}
	lowest := p.refreshBacked(lags, func(node string) bool {
		is := lags[node]
		return is != nil && (is.lasting || !is.since.IsZero() && w.Now.Sub(is.since) >= limit)
	})
	var due time.Time
	began := false
	for _, n := range w.Nodes {
		is := lags[n.Name]
		if is == nil {
			continue
		}
		newest, lasting := p.backed[n.Name], is.lasting && is.applied < is.to && lowest[n.Name] <= is.to
		switch {
		case newest <= is.applied:
			is.since, lasting = time.Time{}, false
		case is.since.IsZero() || lowest[n.Name] > is.until:
			is.since, is.until = w.Now, newest
		}
		switch {
		case lasting:
		case n.Agent.Unwritable != "" || !is.since.IsZero() && w.Now.Sub(is.since) >= limit:
			lasting, is.to, began = true, newest, began || !is.lasting
		case !is.since.IsZero():
			due = world.Earliest(due, is.since.Add(limit))
		}
		is.lasting = lasting
	}
	p.lags = lags
	p.anyLags = slices.ContainsFunc(w.Nodes, func(n *world.Node) bool {
		return lags[n.Name] != nil && lags[n.Name].lasting
	})
	if began {
		p.options.Changed() // The agent may have reported while that did not matter.
	}
	// One check at a time is enough: whatever begins later is due later.
	if !due.IsZero() && !w.Now.Before(p.lagCheck) {
		p.lagCheck = due
		time.AfterFunc(due.Sub(w.Now), p.options.Changed)
	}
}

// refreshBacked computes backed again for some nodes: the plans may have been deleted, or have lost their backends
// there. It returns the lowest version that each of their zones lacks. p.mu must be held.
func (p *Publisher) refreshBacked(lags map[string]*lag, of func(node string) bool) map[string]uint64 {
	stale := false
	for node := range p.backed {
		if of(node) {
			delete(p.backed, node)
			stale = true
		}
	}
	if !stale { // A pass must not look at all backends for nothing.
		return nil
	}
	lowest := map[string]uint64{}
	for _, o := range p.objects {
		version := Version(o)
		p.addBacked(o, func(node string) bool {
			if !of(node) {
				return false
			}
			if version > lags[node].applied && (lowest[node] == 0 || version < lowest[node]) {
				lowest[node] = version
			}
			return true
		})
	}
	return lowest
}

// addBacked adds the version of a plan to backed. p.mu must be held.
func (p *Publisher) addBacked(o *v1alpha1.ServicePlan, of func(node string) bool) {
	version := Version(o)
	for i := range o.Spec.Listeners {
		for _, b := range o.Spec.Listeners[i].Backends {
			if of(b.NodeName) {
				p.backed[b.NodeName] = max(p.backed[b.NodeName], version)
			}
		}
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
			if is := p.lags[b.NodeName]; is != nil && is.lasting && version > is.applied {
				nodes[b.NodeName] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// Lags reports whether the zone of a node has not applied plans with backends there for a while.
func (p *Publisher) Lags(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.lags[node]
	return is != nil && is.lasting
}
