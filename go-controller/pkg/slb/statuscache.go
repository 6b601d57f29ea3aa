// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// statusCache are the statuses of a pass with all that they were made from. Those of which
// nothing changed are the same pointers in the next pass. The zero value has none.
type statusCache struct {
	// What all statuses depend on.
	synced bool
	unread bool
	lost   string
	// failed: the shards can't be configured.
	failed bool
	mode   world.Mode
	active map[world.ShardID]string

	services map[*world.Service]cachedStatus
}

// cachedStatus is one status and what it alone depends on.
type cachedStatus struct {
	outcome    ipam.Outcome
	placements []place.Placement
	want, got  *plan.Service
	advertised []advertisementState
	// flows is what is wrong with the flows that lead to it, ports whether its status lists its ports.
	flows flowVerdict
	ports bool
	// failed: what the dataplane said last is an error, which may read otherwise each time.
	failed bool
	status *kube.ServiceStatus
}

func (w *cachedStatus) sameInputs(o *cachedStatus) bool {
	return !w.failed && !o.failed && w.want == o.want && w.got == o.got && w.flows == o.flows && w.ports == o.ports &&
		w.outcome.Pool == o.outcome.Pool && w.outcome.Reason == o.outcome.Reason && w.outcome.Message == o.outcome.Message &&
		slices.Equal(w.outcome.Addrs, o.outcome.Addrs) && slices.Equal(w.outcome.HeldExternal, o.outcome.HeldExternal) &&
		slices.Equal(w.placements, o.placements) && slices.Equal(w.advertised, o.advertised)
}

// services words the statuses of all Services.
func (v *statusBuilder) services(last *statusCache) map[world.Key]*kube.ServiceStatus {
	same := last.mode == v.world.Cluster.Switch.Mode && last.synced == v.synced &&
		last.unread == v.unread && last.lost == v.lost && last.failed == v.unconfigured() && maps.Equal(last.active, v.active)
	out := make(map[world.Key]*kube.ServiceStatus, len(v.world.Services))
	next := make(map[*world.Service]cachedStatus, len(v.world.Services))
	for _, s := range v.world.Services {
		got := v.programmed[s.Key]
		w := cachedStatus{
			outcome:    v.outcome(s),
			placements: v.placements.Services[s.Key],
			want:       v.plans[s.Key],
			got:        got.Plan,
			advertised: v.advertised(s),
			flows:      v.flows(v.placements.Services[s.Key]),
			ports:      v.listsPorts(s),
			failed:     got.Err != nil,
		}
		if before, ok := last.services[s]; ok && same && w.sameInputs(&before) {
			w.status = before.status
		} else {
			w.status = v.service(s)
		}
		next[s] = w
		if w.status != nil {
			out[s.Key] = w.status
		}
	}
	*last = statusCache{v.synced, v.unread, v.lost, v.unconfigured(), v.world.Cluster.Switch.Mode, v.active, next}
	return out
}

// awaitsOVN reports whether the status of a Service waits until OVN is configured for a new address. OVN-Kubernetes
// adds every address in a status to its own load balancers. If it does so first, ovn-northd 25.09.2 may apply a logical
// flow that both load balancers need to the wrong routers (ovn_dp_group_create in northd/lflow-mgr.c modifies a
// datapath group that is in use). And who reads an address in a status may ask it at once.
func (v *statusBuilder) awaitsOVN(s *world.Service, o ipam.Outcome) bool {
	got := v.programmed[s.Key]
	if v.world.Cluster.OpenShiftSDN || !v.world.Cluster.Switch.Mode.Layer2() || v.layout.Unserved != "" ||
		v.lost != "" || v.unconfigured() || got.Err != nil {
		return false
	}
	if !v.synced { // which bridges and gateways there are is not known yet
		return slices.ContainsFunc(o.Addrs, func(a netip.Addr) bool { return !slices.Contains(s.Assigned, a) })
	}
	for _, placement := range v.placements.Services[s.Key] {
		if slices.Contains(s.Assigned, placement.Addr) || !slices.Contains(o.Addrs, placement.Addr) {
			continue
		}
		planned := placement.Reason == "" && v.plans[s.Key] != nil && v.plans[s.Key].BackendsOverLimit == 0
		if placement.Reason == place.ReasonProbing ||
			planned && (got.Plan == nil || !slices.ContainsFunc(got.Plan.VIPs, func(vip plan.VIP) bool {
				return vip.Addr == placement.Addr
			})) {
			return true
		}
	}
	return false
}

// unconfigured reports whether no shard can be configured. Single shards that can't be are errors of their Services.
func (v *statusBuilder) unconfigured() bool {
	var shards dataplane.ShardsError
	return v.topologyError != nil && !errors.As(v.topologyError, &shards)
}

// service words the status of one Service; nil if there is nothing to write yet, or if another controller may serve it:
// while nothing is allocated here, others may allocate.
func (v *statusBuilder) service(s *world.Service) *kube.ServiceStatus {
	if v.world.Cluster.Switch.Mode == world.Disabled && len(s.Assigned) > 0 && len(s.Given) == 0 {
		return nil
	}
	o := v.outcome(s)
	if v.awaitsOVN(s, o) {
		return nil
	}
	return &kube.ServiceStatus{
		UID: s.UID, Had: s.Assigned, Addrs: o.Addrs, ListPorts: v.listsPorts(s), LeaveIngress: o.Foreign,
		Allocated:     allocated(s, o, v.placements.Services[s.Key]),
		ListsExternal: len(s.ExternalIPs) > 0, External: o.HeldExternal, Announced: v.announced(s),
	}
}
