// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// holdTime is how long a gateway must be without a fault, and not excluded, until preempt moves its shards back to it,
// and without stale flows until it gets shards of others that work: as long as a zone must have a problem until it is a
// fault. Each move interrupts clients. The time doubles, up to maxHoldTime, with each time that the gateway is out
// again before the last one has been over for maxHoldTime.
const holdTime, maxHoldTime = 30 * time.Second, 8 * time.Minute

// domainNode is a node of a domain.
type domainNode struct{ domain, node string }

// recovery is the time of a node that had a fault or was excluded: whether it is out in the last pass, otherwise since
// when it is not, and how long no shard returns to the node then.
type recovery struct {
	out   bool
	ended time.Time
	hold  time.Duration
}

// recoveries are those of the nodes of domains.
type recoveries map[domainNode]recovery

// isOver reports whether shards may return to the node.
func (r recovery) isOver(now time.Time) bool { return !r.out && !now.Before(r.ended.Add(r.hold)) }

// notOver returns the nodes that were out a short while ago, or in the last pass, by domain, and when shards may return
// to them if they are not out now.
func (r recoveries) notOver(now time.Time) map[string]map[string]time.Time {
	nodes := map[string]map[string]time.Time{}
	for g, last := range r {
		if last.isOver(now) {
			continue
		}
		if last.out {
			last.ended = now
		}
		if nodes[g.domain] == nil {
			nodes[g.domain] = map[string]time.Time{}
		}
		nodes[g.domain][g.node] = last.ended.Add(last.hold)
	}
	return nodes
}

// withRecovering adds the nodes that were out a short while ago, or in the last pass, to domains with preempt, and
// those with stale flows to all domains. A process that starts knows of none.
func (o *overlay) withRecovering(domains []*world.Domain, now time.Time) []*world.Domain {
	recovering, stale := o.recoveries.notOver(now), o.staleGateways.notOver(now)
	for i, d := range domains {
		updated := *d
		if d.Preempt {
			updated.Recovering = slices.Sorted(maps.Keys(recovering[d.Name]))
		}
		if updated.RecentlyStale = stale[d.Name]; len(updated.Recovering)+len(updated.RecentlyStale) > 0 {
			domains[i] = &updated
		}
	}
	return domains
}

// recordOut records and returns the nodes of domains with preempt that have a fault, or that could be gateways and no
// longer can: a node can cause that by its labels and by what it reports, as often as a fault.
func (o *overlay) recordOut(w *world.Snapshot, layout *place.Layout) map[domainNode]bool {
	exists := make(map[string]bool, len(w.Nodes))
	for _, n := range w.Nodes {
		exists[n.Name] = true
	}
	out, before := map[domainNode]bool{}, o.members
	o.members = map[string]map[string]bool{}
	for _, d := range layout.Domains {
		if !d.Spec.Preempt {
			continue
		}
		name := d.Spec.Name
		for _, left := range d.Excluded {
			if left.Reason == place.ReasonFaulty {
				out[domainNode{name, left.Node}] = true
			}
		}
		members := possibleGateways(d)
		for node := range before[name] {
			if !exists[node] || members[node] {
				continue
			}
			if len(d.Shards) > 0 { // otherwise no node is a gateway, whatever it does
				out[domainNode{name, node}] = true
			}
			members[node] = true
		}
		o.members[name] = members
	}
	return out
}

// possibleGateways returns the nodes that are gateways of a domain or could be if it had fewer.
func possibleGateways(d *place.Domain) map[string]bool {
	nodes := map[string]bool{}
	for _, s := range d.Shards {
		for _, g := range s.Gateways {
			nodes[g.Node] = true
		}
	}
	for _, left := range d.Excluded {
		if left.Reason == place.ReasonEnoughGateways {
			nodes[left.Node] = true
		} else {
			delete(nodes, left.Node)
		}
	}
	return nodes
}

// recordRecoveries records which nodes of domains with preempt are out, and which gateways have stale flows. It returns
// when the first shard may return to a node, or the zero time if none waits.
func (o *overlay) recordRecoveries(w *world.Snapshot, layout *place.Layout) time.Time {
	if o.recoveries == nil {
		o.recoveries, o.staleGateways = recoveries{}, recoveries{}
	}
	stale, exists := map[domainNode]bool{}, map[string]bool{}
	for _, d := range layout.Domains {
		exists[d.Spec.Name] = true
		for node := range d.Stale {
			stale[domainNode{d.Spec.Name, node}] = true
		}
	}
	maps.DeleteFunc(o.staleGateways, func(g domainNode, _ recovery) bool { return !exists[g.domain] })
	// Stale flows move no shard while those before still count, so only a time after that is another one. Otherwise
	// OVN-Kubernetes, which may repair the flows of one Service after the other, would soon cause the longest time.
	return world.Earliest(
		o.recoveries.record(o.recordOut(w, layout), w.Now, func(r recovery) bool { return !r.out }),
		o.staleGateways.record(stale, w.Now, func(r recovery) bool { return r.isOver(w.Now) }))
}

// record records which nodes are out now. The time until shards may return to a node doubles if again reports that it
// is out for another time. record returns when the first shard may return to a node, or the zero time if none waits.
func (r recoveries) record(out map[domainNode]bool, now time.Time, again func(recovery) bool) time.Time {
	for g := range out {
		last, known := r[g]
		switch {
		case !known:
			last.hold = holdTime
		case again(last):
			last.hold = min(2*last.hold, maxHoldTime)
		}
		last.out = true
		r[g] = last
	}
	var first time.Time
	for g, last := range r {
		if last.out && !out[g] {
			last.out, last.ended = false, now
			r[g] = last
		}
		switch {
		case last.out:
		case !now.Before(last.ended.Add(maxHoldTime)):
			delete(r, g)
		case !last.isOver(now):
			first = world.Earliest(first, last.ended.Add(last.hold))
		}
	}
	return first
}
