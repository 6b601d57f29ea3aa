// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// minRest combines changes of Nodes in quick succession into one topology. restShare limits the share of the time
	// that is spent on topologies, and maxRest the delay of the next one.
	minRest, maxRest = 100 * time.Millisecond, time.Second
	restShare        = 9
)

// pace is when the topology, and with it everything, may be computed again. A node can rewrite its annotations as often
// as it likes, and each agent gets each version.
type pace struct {
	// resting is until when changes that may wait do so. Used by work only.
	resting time.Time
	// patient is set if such a change has come since the last computation, and urgent if another one has.
	patient, urgent bool
	// wakes is set if the agent will be woken at the end of the rest.
	wakes bool
}

// outdate records that more than plans has changed. The order of gateways is urgent: other zones write it, too.
func (p *published) outdate(urgent bool) {
	p.whole = true
	p.pace.urgent = p.pace.urgent || urgent
	p.pace.patient = p.pace.patient || !urgent
}

// changeNode is setNode, for which the agent's own Node does not wait: its database may be that of other nodes from now
// on, and the zone of a Node that is gone must release its shards. a.mu must be held.
func (a *Agent) changeNode(old, now *corev1.Node) bool {
	relevant := a.setNode(old, now)
	if relevant && cmp.Or(now, old).Name == a.options.Node {
		a.outdate(true)
	}
	return relevant
}

// sameOrders reports whether two versions of an L2Domain have the same shards with the same gateways in order; was may
// be nil.
func sameOrders(was, now *v1alpha1.L2Domain) bool {
	return was != nil && slices.EqualFunc(was.Status.Shards, now.Status.Shards, func(a, b v1alpha1.ShardStatus) bool {
		return a.Index == b.Index && slices.Equal(a.Gateways, b.Gateways)
	})
}

// rests reports whether what has changed waits, changed plans as well: they need the topology that belongs to them. The
// agent is woken when it no longer does. a.mu must be held.
func (a *Agent) rests(now time.Time) bool {
	p := &a.pace
	if !p.patient || p.urgent || !now.Before(p.resting) {
		return false
	}
	if !p.wakes {
		p.wakes = true
		time.AfterFunc(p.resting.Sub(now), a.changed)
	}
	return true
}

// rest begins a rest after a computation.
func (p *pace) rest(took time.Duration) {
	p.resting = time.Now().Add(min(max(minRest, restShare*took), maxRest))
}
