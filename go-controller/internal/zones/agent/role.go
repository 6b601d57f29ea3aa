// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// role is what the rows of a Service depend on besides its plan: its shards as the zone has them, and the pod subnets
// of the nodes whose own addresses backends have (a shard reaches such a backend by an alias in the node's subnet). A
// node that joins a cluster changes neither, so the Services need not be applied again.
type role struct {
	shards map[world.ShardID]shardRole
	hosts  map[string][]netip.Prefix
}

// shardRole is what the rows of a Service depend on of a shard.
type shardRole struct {
	ordinal int
	// local is set if the node is a gateway, and sharedBridge if a gateway has the bridge of OVN-Kubernetes' own one.
	local, sharedBridge bool
}

// roleOf returns the role of a zone with these plans.
func roleOf(f *plan.Topology, plans map[world.Key]*plan.Service) role {
	r := role{shards: map[world.ShardID]shardRole{}}
	for _, d := range f.Domains {
		for _, s := range d.Shards {
			as := shardRole{ordinal: s.Ordinal}
			for _, g := range s.Gateways {
				as.local = as.local || g.Chassis == f.Zone.Chassis
				as.sharedBridge = as.sharedBridge || g.SharedBridge
			}
			r.shards[s.ID] = as
		}
	}
	subnets := make(map[string][]netip.Prefix, len(f.Nodes))
	for _, n := range f.Nodes {
		subnets[n.Name] = n.PodSubnets
	}
	for _, s := range plans {
		r.add(s, func(node string) []netip.Prefix { return subnets[node] })
	}
	return r
}

// add records the nodes of a plan, and their pod subnets with which its rows are written.
func (r *role) add(s *plan.Service, subnets func(node string) []netip.Prefix) {
	if s == nil {
		return
	}
	for _, l := range s.Listeners {
		for _, backends := range [][]plan.Backend{l.Backends, l.Draining} {
			for _, b := range backends {
				if _, known := r.hosts[b.Node]; b.HostNetwork && !known {
					if r.hosts == nil {
						r.hosts = map[string][]netip.Prefix{}
					}
					r.hosts[b.Node] = subnets(b.Node)
				}
			}
		}
	}
}

// outdated returns the plans whose rows, written in a former role, differ now, although the plans may be the same. An
// edit of a node concerns the Services that have backends at its addresses only, and a shard those with an address in
// it: a tenant can have one come and go, by a Service that is alone there.
func (r role) outdated(was role, plans map[world.Key]*plan.Service) map[world.Key]struct{} {
	changed := func(node string) bool {
		now, used := r.hosts[node]
		before, known := was.hosts[node]
		return used && known && !slices.Equal(now, before)
	}
	differs := func(v plan.VIP) bool {
		now, exists := r.shards[v.Shard]
		before, existed := was.shards[v.Shard]
		return exists != existed || now != before
	}
	shards := !maps.Equal(r.shards, was.shards)
	out := map[world.Key]struct{}{}
	if !shards && !slices.ContainsFunc(slices.Collect(maps.Keys(was.hosts)), changed) {
		return out
	}
	for key, s := range plans {
		if s != nil && (shards && slices.ContainsFunc(s.VIPs, differs) || hasHost(s, changed)) {
			out[key] = struct{}{}
		}
	}
	return out
}

// hasHost reports whether a backend has an address of one of some nodes.
func hasHost(s *plan.Service, of func(node string) bool) bool {
	in := func(list []plan.Backend) bool {
		return slices.ContainsFunc(list, func(b plan.Backend) bool { return b.HostNetwork && of(b.Node) })
	}
	return slices.ContainsFunc(s.Listeners, func(l plan.Listener) bool { return in(l.Backends) || in(l.Draining) })
}
