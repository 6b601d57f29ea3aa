// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// role is what the rows of a Service depend on besides its plan: which shards the zone has, and the pod subnets of the
// nodes whose own addresses backends have (a shard reaches such a backend by an alias in the node's subnet). A node
// that joins a cluster changes neither, so the Services need not be applied again.
type role struct {
	shards string
	hosts  map[string][]netip.Prefix
}

// roleOf returns the role of a zone with these plans.
func roleOf(f *plan.Topology, plans map[world.Key]*plan.Service) role {
	var shards strings.Builder
	for _, d := range f.Domains {
		for _, s := range d.Shards {
			var local, sharedBridge bool
			for _, g := range s.Gateways {
				local = local || g.Chassis == f.Zone.Chassis
				sharedBridge = sharedBridge || g.SharedBridge
			}
			fmt.Fprintln(&shards, s.ID, s.Ordinal, local, sharedBridge)
		}
	}
	r := role{shards: shards.String()}
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

// outdates reports whether rows that were written in a former role differ now, although their plans may be the same.
func (r role) outdates(was role) bool {
	if r.shards != was.shards {
		return true
	}
	for node, subnets := range was.hosts {
		if now, used := r.hosts[node]; used && !slices.Equal(now, subnets) {
			return true
		}
	}
	return false
}
