// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// fitness says how well a node can carry the shards of a domain. One that drains works
// for now, one with a fault does not.
type fitness int

const (
	fit fitness = iota
	leaving
	faulty
)

func (d *Domain) fitness(n *world.Node) fitness {
	switch {
	case d.fault(n) != "":
		return faulty
	case n.Draining != "":
		return leaving
	}
	return fit
}

// fault says what keeps a node from serving the domain's network, empty for nothing.
func (d *Domain) fault(n *world.Node) string {
	if why := n.Faults[d.Spec.PhysicalNetwork]; why != "" {
		return why
	}
	return n.Faults[world.EveryNetwork]
}

// fittest returns those of the members than which none is fitter.
func (d *Domain) fittest(members []*world.Node) []*world.Node {
	best := faulty
	for _, n := range members {
		best = min(best, d.fitness(n))
	}
	return slices.DeleteFunc(slices.Clone(members), func(n *world.Node) bool { return d.fitness(n) != best })
}
