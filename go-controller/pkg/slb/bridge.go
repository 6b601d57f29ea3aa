// SPDX-License-Identifier: Apache-2.0

package slb

import (
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

// outcome is what a Service has, without new addresses of which no gateway can hear yet: OVN-Kubernetes fixes the flows for an
// address when it sees it in a status, and the port of OVN has to be there by then (package place, bridge.go).
func (v *verdicts) outcome(s *world.Service) ipam.Outcome {
	o := v.allocation.Services[s.Key]
	var why string
	kept := slices.DeleteFunc(slices.Clone(o.Addrs), func(a netip.Addr) bool {
		if slices.Contains(s.Assigned, a) {
			return false
		}
		waits := v.layout.Waits(v.allocation.PoolOf(a))
		if why == "" {
			why = waits
		}
		return waits != ""
	})
	if why == "" {
		return o
	}
	o.Addrs = kept
	o.Reason, o.Message = ipam.Reason(v1alpha1.ReasonDomainNotReady), why
	return o
}

// bridgeVerdict is what is wrong with a bridge that an address has to be heard through, the zero value for nothing.
type bridgeVerdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// bridges is the verdict on the bridges of the gateways that carry a Service's addresses.
func (v *verdicts) bridges(spots []place.Spot) bridgeVerdict {
	for i := range spots {
		node := v.nodes[v.active[spots[i].Shard]]
		if spots[i].Reason != "" || node == nil {
			continue
		}
		known, message := v.layout.BridgeState(&spots[i], node, v.world)
		switch {
		case !known:
			return bridgeVerdict{metav1.ConditionUnknown, v1alpha1.ReasonNoGuard, message}
		case message != "":
			return bridgeVerdict{metav1.ConditionFalse, v1alpha1.ReasonStaleFlow, message}
		}
	}
	return bridgeVerdict{}
}

const (
	// firstRefresh is the time between two refreshes of a Service's status, lastRefresh that after many in vain: each takes its flows off
	// the bridges for a moment.
	firstRefresh = 10 * time.Second
	lastRefresh  = 10 * time.Minute
)

// refresh is when a Service's status was last written again for the sake of OVN-Kubernetes' flows.
type refresh struct {
	// lists: the status shall list the Service's ports. That it does or does not means nothing; that it changes has
	// OVN-Kubernetes make its flows anew.
	lists bool
	// next is when it may be written again, wait the time after that.
	next time.Time
	wait time.Duration
}

// refreshes are those of the Services with stale flows.
type refreshes map[world.Key]refresh

// decide has the statuses written again of Services for which a gateway's bridge has a stale flow, and returns when it has to be
// asked again; the zero time for never.
func (r refreshes) decide(d *decision) time.Time {
	stale := d.layout.Stale(d.world)
	maps.DeleteFunc(r, func(k world.Key, _ refresh) bool { _, known := d.allocation.Services[k]; return !known })
	var due time.Time
	for _, s := range d.world.Services {
		last, was := r[s.Key]
		if !slices.ContainsFunc(slices.Concat(s.Assigned, s.ExternalIPs), func(a netip.Addr) bool { return stale[a] }) {
			if was && last.lists == s.ListsPorts {
				delete(r, s.Key)
			}
			continue
		}
		if !was {
			last = refresh{lists: s.ListsPorts, wait: firstRefresh}
		}
		if last.lists == s.ListsPorts && !d.world.Now.Before(last.next) {
			last.lists, last.next, last.wait = !s.ListsPorts, d.world.Now.Add(last.wait), min(2*last.wait, lastRefresh)
			klog.InfoS("Write a status again, so that OVN-Kubernetes makes its flows for the addresses anew", "service", s.Key.String(),
				"listsPorts", last.lists, "nextTry", last.next)
		}
		r[s.Key] = last
		due = earlier(due, last.next)
	}
	return due
}

// listsPorts tells whether the status of a Service shall list its ports.
func (v *verdicts) listsPorts(s *world.Service) bool {
	if last, ok := v.refreshes[s.Key]; ok {
		return last.lists
	}
	return s.ListsPorts
}
