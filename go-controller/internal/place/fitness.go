// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// fitness is how well a node can serve the shards of a domain. A partial one, of OpenShift SDN, has no address in the
// subnets of one family, so that it has no route to the segment in that family. A leaving node drains but still works.
// The agent of a silent one does not report: its zone would not learn that it is to have a shard, and would not claim
// it, while the other gateways leave the shard to it. A stale one does not receive requests for some addresses, or did
// not until a short while ago. A faulty one does not work.
type fitness int

const (
	fit fitness = iota
	partial
	draining
	silent
	stale
	faulty
)

func (d *Domain) fitness(n *world.Node) fitness {
	switch {
	case cmp.Or(n.FaultOf(d.Spec.PhysicalNetwork).Message, d.portFaults[n.Name]) != "":
		return faulty
	case d.Stale[n.Name] != "", d.RecentlyStale[n.Name]:
		return stale
	case n.Agent != nil && n.Agent.Silent:
		return silent
	case n.Draining != "":
		return draining
	case d.lacksFamily(n):
		return partial
	}
	return fit
}

// fault returns what prevents a node from serving the domain's network, or an empty string.
func (d *Domain) fault(n *world.Node) string {
	return cmp.Or(n.FaultOf(d.Spec.PhysicalNetwork).Message, d.portFaults[n.Name], d.Stale[n.Name])
}

// faultText returns what prevents a node from serving the domain's network, or did so until a short while ago, or an
// empty string.
func (d *Domain) faultText(n *world.Node) string {
	if d.RecentlyStale[n.Name] {
		return "until a short while ago, stale flows of OVN-Kubernetes did not forward requests to OVN; " +
			"it gets no shards of others yet"
	}
	return d.fault(n)
}

// keepsShards reports whether a node continues as the active gateway of shards. One whose flows were stale a short
// while ago does, although it gets no others: otherwise shards would move each time that the flows of a gateway are
// stale for a moment.
func (d *Domain) keepsShards(n *world.Node, best fitness) bool {
	return d.fitness(n) == best || d.RecentlyStale[n.Name] && (n.Agent == nil || !n.Agent.Silent) && n.Draining == ""
}

// best returns the fitness of the fittest member.
func (d *Domain) best(members []*world.Node) fitness {
	best := faulty
	for _, n := range members {
		best = min(best, d.fitness(n))
	}
	return best
}

// faultOfEach describes the faults of members of which none is fit. It returns an empty string if one of them has none,
// but had stale flows a short while ago.
func (d *Domain) faultOfEach(members []*world.Node) string {
	faults := make([]ExcludedNode, 0, len(members))
	for _, n := range members {
		if d.RecentlyStale[n.Name] {
			return ""
		}
		faults = append(faults, ExcludedNode{n.Name, ReasonFaulty, fmt.Sprintf("node %q: %s", n.Name, d.fault(n))})
	}
	if d.best(members) == stale {
		return "no gateway is without a fault: " + causes(faults)
	}
	return "all gateways are faulty and stay active: " + causes(faults)
}

// addUnobserved records the members whose uplinks are not observed. That is no fault: without Open vSwitch's database,
// ovn-controller may not release what another gateway would claim, and two would answer.
func (d *Domain) addUnobserved(members []*world.Node) {
	var names []string
	for _, n := range members {
		if n.Unobserved {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	d.Unobserved = true
	d.Warnings = append(d.Warnings, fmt.Sprintf("the guard of %s can't read Open vSwitch's database (ovsdb-server), so "+
		"that a lost uplink there is not detected", some(names)))
}
