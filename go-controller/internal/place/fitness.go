// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// fitness is how well a node can serve the shards of a domain. A partial one, of OpenShift SDN, has no address in the
// subnets of one family, so that it has no route to the segment in that family. A leaving node drains but still works.
// The agent of a silent one does not report: its zone would not learn that it is to have a shard, and would not claim
// it, while the other gateways leave the shard to it. A stale one does not receive requests for some addresses. A faulty
// one does not work.
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
	case d.staleFaults[n.Name] != "":
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
	return cmp.Or(n.FaultOf(d.Spec.PhysicalNetwork).Message, d.portFaults[n.Name], d.staleFaults[n.Name])
}

// best returns the fitness of the fittest member.
func (d *Domain) best(members []*world.Node) fitness {
	best := faulty
	for _, n := range members {
		best = min(best, d.fitness(n))
	}
	return best
}
