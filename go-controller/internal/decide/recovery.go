// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// holdTime is how long a gateway must be without a fault until preempt moves its shards back to it: as long as a zone
// must have a problem until it is a fault. Each move interrupts clients. The time doubles, up to maxHoldTime, with each
// fault that begins before the last one has been over for maxHoldTime.
const holdTime, maxHoldTime = 30 * time.Second, 8 * time.Minute

// domainNode is a node of a domain.
type domainNode struct{ domain, node string }

// recovery is a fault of a node: whether it had it in the last pass, otherwise since when it has not, and how long no
// shard returns to the node then.
type recovery struct {
	faulty bool
	ended  time.Time
	hold   time.Duration
}

// isOver reports whether shards may return to the node.
func (r recovery) isOver(now time.Time) bool { return !r.faulty && !now.Before(r.ended.Add(r.hold)) }

// withRecovering adds the nodes that had a fault a short while ago, or in the last pass, to domains with preempt. A
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

// recordRecoveries records the faults of the nodes of domains with preempt. It returns when the first shard may return
// to a node, or the zero time if none waits.
func (o *overlay) recordRecoveries(layout *place.Layout, now time.Time) time.Time {
	faulty := map[domainNode]bool{}
	for _, d := range layout.Domains {
		for _, out := range d.Excluded {
			if d.Spec.Preempt && out.Reason == place.ReasonFaulty {
				faulty[domainNode{d.Spec.Name, out.Node}] = true
			}
		}
	}
	if o.recoveries == nil {
		o.recoveries = map[domainNode]recovery{}
	}
	for g := range faulty {
		r, again := o.recoveries[g]
		switch {
		case !again:
			r.hold = holdTime
		case !r.faulty:
			r.hold = min(2*r.hold, maxHoldTime)
		}
		r.faulty = true
		o.recoveries[g] = r
	}
	var first time.Time
	for g, r := range o.recoveries {
		if r.faulty && !faulty[g] {
			r.faulty, r.ended = false, now
			o.recoveries[g] = r
		}
		switch {
		case r.faulty:
		case !now.Before(r.ended.Add(maxHoldTime)):
			delete(o.recoveries, g)
		case !r.isOver(now):
			first = world.Earliest(first, r.ended.Add(r.hold))
		}
	}
	return first
}
