// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// holdTime is how long a gateway must be without a fault, and not excluded, until preempt moves its shards back to it:
// as long as a zone must have a problem until it is a fault. Each move interrupts clients. The time doubles, up to
// maxHoldTime, with each time that the gateway is out again before the last one has been over for maxHoldTime.
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

// isOver reports whether shards may return to the node.
func (r recovery) isOver(now time.Time) bool { return !r.out && !now.Before(r.ended.Add(r.hold)) }

// withRecovering adds the nodes that were out a short while ago, or in the last pass, to domains with preempt. A
// process that starts knows of none.
func (o *overlay) withRecovering(domains []*world.Domain, now time.Time) []*world.Domain {
	byDomain := map[string][]string{}
	for g, r := range o.recoveries {
		if !r.isOver(now) {
			byDomain[g.domain] = append(byDomain[g.domain], g.node)
		}
	}
	for i, d := range domains {
		if nodes := byDomain[d.Name]; d.Preempt && len(nodes) > 0 {
			updated := *d
			slices.Sort(nodes)
			updated.Recovering, domains[i] = nodes, &updated
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

// recordRecoveries records which nodes of domains with preempt are out. It returns when the first shard may return to a
// node, or the zero time if none waits.
func (o *overlay) recordRecoveries(w *world.Snapshot, layout *place.Layout) time.Time {
	out, now := o.recordOut(w, layout), w.Now
	if o.recoveries == nil {
		o.recoveries = map[domainNode]recovery{}
	}
	for g := range out {
		r, again := o.recoveries[g]
		switch {
		case !again:
			r.hold = holdTime
		case !r.out:
			r.hold = min(2*r.hold, maxHoldTime)
		}
		r.out = true
		o.recoveries[g] = r
	}
	var first time.Time
	for g, r := range o.recoveries {
		if r.out && !out[g] {
			r.out, r.ended = false, now
			o.recoveries[g] = r
		}
		switch {
		case r.out:
		case !now.Before(r.ended.Add(maxHoldTime)):
			delete(o.recoveries, g)
		case !r.isOver(now):
			first = world.Earliest(first, r.ended.Add(r.hold))
		}
	}
	return first
}
