// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// fitness is how well a node can serve the shards of a domain. A partial one, of OpenShift SDN, has no address in the
// subnets of one family, so that it has no route to the segment in that family. A recently stale one works, but did not
// receive requests for some addresses until a short while ago. A draining one is about to leave but still works. The
// agent of a silent one does not report: its zone would not learn that it is to have a shard, and would not claim it,
// while the other gateways leave the shard to it. A stale one does not receive requests for some addresses. A faulty
// one does not work.
type fitness int

const (
	fit fitness = iota
	partial
	recentlyStale
	draining
	silent
	stale
	faulty
)

func (d *Domain) fitness(n *world.Node) fitness {
	switch {
	case cmp.Or(n.FaultOf(d.Spec.PhysicalNetwork).Message, d.portFaults[n.Name]) != "":
		return faulty
	case d.Stale[n.Name] != "":
		return stale
	case n.Agent != nil && n.Agent.Silent:
		return silent
	case n.Draining != "":
		return draining
	case d.RecentlyStale[n.Name]:
		return recentlyStale
	case d.lacksFamily(n):
		return partial
	}
	return fit
}

// fault returns what prevents a node from serving the domain's network, or an empty string.
func (d *Domain) fault(n *world.Node) string {
	return cmp.Or(n.FaultOf(d.Spec.PhysicalNetwork).Message, d.portFaults[n.Name], d.Stale[n.Name])
}

// keepsShards reports whether a node continues as the active gateway of shards. One whose flows were stale a short
// while ago does, although it gets none of gateways that work. One whose flows are stale gives them neither to one of
// those, which may be stale again at any time, nor to one that drains. Otherwise shards would move each time that the
// flows of a gateway are stale for a moment.
func (d *Domain) keepsShards(n *world.Node, best fitness) bool {
	switch f := d.fitness(n); {
	case f == recentlyStale:
		return true
	case f == stale && n.Draining == "":
		return best >= recentlyStale
	case f == stale:
		return best >= draining
	default:
		return f == best
	}
}

// best returns the fitness of the fittest member.
func (d *Domain) best(members []*world.Node) fitness {
	best := faulty
	for _, n := range members {
		best = min(best, d.fitness(n))
	}
	return best
}

// faultOfEach describes the faults of members each of which has one.
func (d *Domain) faultOfEach(members []*world.Node) string {
	faults := make([]ExcludedNode, 0, len(members))
	for _, n := range members {
		faults = append(faults, ExcludedNode{n.Name, ReasonFaulty, fmt.Sprintf("node %q: %s", n.Name, d.fault(n))})
	}
	if d.best(members) == stale {
		return "no gateway is without a fault: " + causes(faults)
	}
	return "all gateways are faulty and stay active: " + causes(faults)
}

// addRecentlyStale records the members that get no shards yet of gateways that work, and until when.
func (d *Domain) addRecentlyStale(members []*world.Node) {
	var names []string
	for _, n := range members {
		if d.fitness(n) == recentlyStale {
			names = append(names, fmt.Sprintf("%s (until %s)", n.Name, d.staleUntil(n)))
		}
	}
	if len(names) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("stale flows of OVN-Kubernetes, which ended a short while ago, still "+
			"count on %s: such a gateway keeps its shards, and gets others only from gateways that drain or do not work",
			some(names)))
	}
}

// staleUntil returns until when the stale flows of a member count that ended a short while ago.
func (d *Domain) staleUntil(n *world.Node) string {
	return d.Spec.RecentlyStale[n.Name].UTC().Format(time.RFC3339)
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
