// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// outcome returns the allocation outcome of a Service without new addresses for which no gateway can receive requests
// yet. OVN-Kubernetes computes the flows for an address when it sees the address in a status, and OVN's port must exist
// by then (package place, bridge.go).
func (v *statusBuilder) outcome(s *world.Service) ipam.Outcome {
	o := v.allocation.Services[s.Key]
	if len(s.Assigned) > 0 {
		return o // a stale flow is repaired later; removing a working address would be worse
	}
	for _, a := range o.Addrs {
		pool := v.allocation.PoolOf(a)
		if why := v.layout.Waits(pool); why != "" && !v.bgp.TakesPool(pool) {
			o.Addrs = nil
			o.Reason, o.Message = ipam.Reason(v1alpha1.ReasonDomainNotReady), why
			return o
		}
	}
	return o
}

// flowVerdict describes the flow that keeps requests from a load balancer. The zero value means that no such flow is
// known.
type flowVerdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// flows returns the verdict on OVN's routers and on the bridges of the gateways that carry a Service's addresses.
func (v *statusBuilder) flows(placements []place.Placement) flowVerdict {
	for i := range placements {
		if placements[i].Reason == "" && v.world.Misplaced[placements[i].Addr] {
			return flowVerdict{metav1.ConditionFalse, v1alpha1.ReasonMisplacedFlow,
				fmt.Sprintf("address %s: OVN has no flow for it in the "+
					"router of shard %d of L2Domain %s, or one of OVN-Kubernetes beside ours, a fault of ovn-northd where "+
					"OVN-Kubernetes had the "+
					"address first; docs/architecture.md, Failure modes, says how to mend it", placements[i].Addr,
					placements[i].Shard.Index, placements[i].Shard.Domain)}
		}
		node := v.nodes[v.active[placements[i].Shard]]
		if placements[i].Reason != "" || node == nil {
			continue
		}
		known, message := v.layout.BridgeState(&placements[i], node, v.world)
		switch {
		case !known:
			return flowVerdict{metav1.ConditionUnknown, v1alpha1.ReasonNoGuard, message}
		case message != "":
			return flowVerdict{metav1.ConditionFalse, v1alpha1.ReasonStaleFlow, message}
		}
	}
	return flowVerdict{}
}

const (
	// firstRefresh is the time between the first two refreshes of a Service's status. The time doubles up to lastRefresh,
	// because each refresh briefly removes the Service's flows from the bridges.
	firstRefresh = 10 * time.Second
	lastRefresh  = 10 * time.Minute
)

// refresh is a rewrite of a Service's status that makes OVN-Kubernetes recompute the Service's flows.
type refresh struct {
	// lists reports whether the status must list the Service's ports. The value itself has no meaning; OVN-Kubernetes
	// reacts to the change.
	lists bool
	// next is when the status may be rewritten again. wait is the delay after that.
	next time.Time
	wait time.Duration
}

// refreshes holds the refresh of each Service with stale flows.
type refreshes map[world.Key]refresh

// decide schedules status refreshes for Services for which the bridge of a gateway has a stale flow. It returns the
// time when the next refresh may be due, or the zero time if none is.
func (r refreshes) decide(d *decision) time.Time {
	stale := d.layout.Stale(d.world)
	maps.DeleteFunc(r, func(k world.Key, _ refresh) bool { _, known := d.allocation.Services[k]; return !known })
	var due time.Time
	for _, s := range d.world.Services {
		last, was := r[s.Key]
		if !slices.ContainsFunc(d.layout.Refreshable(s), func(a netip.Addr) bool { return stale[a] }) {
			// Keep the delay for a while, so that alternating reports do not cause a storm of writes.
			if was && last.lists == s.ListsPorts && d.world.Now.After(last.next.Add(last.wait)) {
				delete(r, s.Key)
			}
			continue
		}
		if !was {
			last = refresh{lists: s.ListsPorts, wait: firstRefresh}
		}
		if last.lists == s.ListsPorts && !d.world.Now.Before(last.next) {
			last.lists, last.next, last.wait = !s.ListsPorts, d.world.Now.Add(last.wait), min(2*last.wait, lastRefresh)
			klog.InfoS("Rewriting Service status so that OVN-Kubernetes recomputes its flows", "service", s.Key.String(),
				"listsPorts", last.lists, "nextTry", last.next)
		}
		r[s.Key] = last
		at := last.next
		if !at.After(d.world.Now) { // the last rewrite is not in the status yet
			at = d.world.Now.Add(firstRefresh)
		}
		due = earlier(due, at)
	}
	return due
}

// listsPorts reports whether the status of a Service must list its ports.
func (v *statusBuilder) listsPorts(s *world.Service) bool {
	if last, ok := v.refreshes[s.Key]; ok {
		return last.lists
	}
	return s.ListsPorts
}
