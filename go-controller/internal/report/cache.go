// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Cache holds the statuses of a pass and their inputs. A status whose inputs did not change keeps its pointer in
// the next pass. The zero value is empty.
type Cache struct {
	// Inputs of all statuses.
	synced      bool
	unread      bool
	unreachable string
	// failed is set if the shards cannot be configured.
	failed bool
	mode   world.Mode
	active map[world.ShardID]string
	rivals map[world.ShardID]rivals
	// tunnelsDown are the nodes that OVN can't reach.
	tunnelsDown map[string]world.TunnelFault

	services map[*world.Service]cachedStatus
}

// cachedStatus is the status of one Service and its own inputs.
type cachedStatus struct {
	outcome    ipam.Outcome
	placements []place.Placement
	// want and got are the plans that the status was built from, compared by pointer only: a pass compares them with
	// those of the decision and of the results.
	want, got  *plan.Service
	advertised []advertisementState
	// flows is the verdict on the flows that lead to the Service. ports reports whether its status lists its ports.
	flows flowState
	ports bool
	// applied are the addresses that the zones of their gateways have programmed, and applyError is why one could not.
	applied    []netip.Addr
	applyError string
	// zoneWait is set as long as the status may wait for the zone. zoneSilent is why its agent can't report progress.
	zoneWait   bool
	zoneSilent string
	// lagging is about endpoints on nodes whose zones have not applied the plan.
	lagging string
	// pending is set if changes have not taken effect yet, and late if that has taken too long.
	pending, late bool
	// postponed is set if the newest plan waits in the dataplane.
	postponed bool
	// egress is about connections that the pods open from the address.
	egress egressState
	// failed is set if the last result of the dataplane is an error, whose text may differ each time.
	failed bool
	status *status.Service
}

func (c *cachedStatus) sameInputs(o *cachedStatus) bool {
	return !c.failed && !o.failed && c.want == o.want && c.got == o.got && c.flows == o.flows && c.ports == o.ports &&
		c.outcome.Pool == o.outcome.Pool && c.outcome.Reason == o.outcome.Reason && c.outcome.Message == o.outcome.Message &&
		slices.Equal(c.outcome.Addrs, o.outcome.Addrs) && slices.Equal(c.outcome.HeldExternal, o.outcome.HeldExternal) &&
		slices.Equal(c.placements, o.placements) && slices.Equal(c.advertised, o.advertised) &&
		slices.Equal(c.applied, o.applied) && c.applyError == o.applyError && c.zoneWait == o.zoneWait &&
		c.zoneSilent == o.zoneSilent && c.pending == o.pending && c.late == o.late && c.postponed == o.postponed &&
		c.egress == o.egress && c.lagging == o.lagging
}

// Services returns the statuses of all Services.
func (v *Builder) Services(last *Cache) map[world.Key]*status.Service {
	same := last.mode == v.World.Cluster.ModeSetting.Mode && last.synced == v.Synced &&
		last.unread == v.Unread && last.unreachable == v.Unreachable && last.failed == v.unconfigured() &&
		maps.Equal(last.active, v.active) && maps.Equal(last.rivals, v.rivals) &&
		maps.Equal(last.tunnelsDown, v.Layout.TunnelsDown)
	out := make(map[world.Key]*status.Service, len(v.World.Services))
	next := make(map[*world.Service]cachedStatus, len(v.World.Services))
	for _, s := range v.World.Services {
		got := v.Programmed[s.Key]
		w := cachedStatus{
			outcome:    v.outcome(s),
			placements: v.Placements.Services[s.Key],
			want:       v.Plans[s.Key],
			got:        got.Plan,
			advertised: v.advertisementsOf(s),
			flows:      v.flows(s),
			ports:      v.ListsPorts(s),
			applied:    v.World.Applied[s.Key],
			applyError: v.World.ApplyErrors[s.Key],
			zoneWait:   v.MayAwaitZone(s.Key),
			lagging:    v.lagging(s.Key),
			pending:    !got.Pending.IsZero(),
			late:       !got.Pending.IsZero() && !v.awaitsTranslation(got),
			postponed:  got.Postponed,
			egress:     v.egressOf(s.Key),
			failed:     got.Err != nil,
		}
		if p := v.Plans[s.Key]; p != nil {
			if silent := v.silentZone(p.VIPs); silent != nil {
				w.zoneSilent = silent.Message
			}
		}
		if before, ok := last.services[s]; ok && same && w.sameInputs(&before) {
			w.status = before.status
		} else {
			w.status = v.Service(s)
		}
		next[s] = w
		if w.status != nil {
			out[s.Key] = w.status
		}
	}
	*last = Cache{v.Synced, v.Unread, v.Unreachable, v.unconfigured(), v.World.Cluster.ModeSetting.Mode, v.active,
		v.rivals, v.Layout.TunnelsDown, next}
	return out
}

// awaitsOVN reports whether the status of a Service waits until OVN is configured for a new address. OVN-Kubernetes
// adds every address in a status to its own load balancers. If it does so first, ovn-northd 25.09.2 may apply a logical
// flow that both load balancers need to the wrong routers (ovn_dp_group_create in northd/lflow-mgr.c modifies a
// datapath group that is in use). In addition, clients may connect to an address as soon as they read it in a status.
func (v *Builder) awaitsOVN(s *world.Service, o ipam.Outcome) bool {
	got := v.Programmed[s.Key]
	if v.World.Cluster.OpenShiftSDN || !v.World.Cluster.ModeSetting.Mode.Layer2() || v.Layout.UnsupportedReason != "" ||
		v.Unreachable != "" || v.unconfigured() || got.Err != nil {
		return false
	}
	placements := v.Placements.Services[s.Key]
	if s.Contested && v.World.Announced == nil && slices.ContainsFunc(placements, func(p place.Placement) bool {
		return p.Reason == place.ReasonProbing
	}) {
		return true // The database will show whether the address is announced.
	}
	if !v.Synced { // bridges and gateways are not known yet
		return slices.ContainsFunc(o.Addrs, func(a netip.Addr) bool { return !slices.Contains(s.Assigned, a) })
	}
	for _, placement := range placements {
		if slices.Contains(s.Assigned, placement.Addr) || !slices.Contains(o.Addrs, placement.Addr) {
			continue
		}
		planned := placement.Reason == "" && v.Plans[s.Key] != nil && v.Plans[s.Key].Excess.Limit == plan.NoLimit
		if placement.Reason == place.ReasonProbing ||
			planned && (got.Plan == nil || !slices.ContainsFunc(got.Plan.VIPs, func(vip plan.VIP) bool {
				return vip.Addr == placement.Addr
			}) || v.awaitsTranslation(got) || v.awaitsZone(s, placement.Addr)) {
			return true
		}
	}
	return false
}

// unconfigured reports whether no shard can be configured. If only some shards cannot be configured, their Services
// report the error.
func (v *Builder) unconfigured() bool {
	var shards dataplane.ShardsError
	return v.TopologyError != nil && !errors.As(v.TopologyError, &shards)
}

// Service returns the status of one Service. It returns nil if there is nothing to write yet, or if another controller
// may serve the Service: other controllers may allocate addresses while this one allocates none.
func (v *Builder) Service(s *world.Service) *status.Service {
	if v.World.Cluster.ModeSetting.Mode == world.Disabled && len(s.Assigned)+len(s.AssignedHosts) > 0 &&
		len(s.Given) == 0 {
		return nil
	}
	o := v.outcome(s)
	if v.awaitsOVN(s, o) {
		return nil
	}
	allocation := allocatedVerdict(s, o, v.Placements.Services[s.Key], v.Allocation.PoolOf)
	announcement := v.announced(s)
	// The writer holds the statuses of all Services. The message about thousands of addresses can have megabytes.
	allocation.Message = status.Truncate(allocation.Message)
	if announcement != nil {
		announcement.Message = status.Truncate(announcement.Message)
	}
	return &status.Service{
		UID: s.UID, PreviousAddrs: s.Assigned, PreviousHosts: s.AssignedHosts,
		Addrs: o.Addrs, ListPorts: v.ListsPorts(s), LeaveIngress: o.Foreign,
		Allocated:     allocation,
		ListsExternal: len(s.ExternalIPs) > 0, External: o.HeldExternal, Announced: announcement,
	}
}
