// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// globalZone is the zone of a node for which OVN-Kubernetes reports no zone.
const globalZone = "global"

// Zones determines which nodes one northbound database configures.
type Zones struct {
	// Home is the zone of more than half of the nodes that have a chassis. Its databases are the cluster's. It is empty
	// if there is no such zone.
	Home string
	// Interconnect means that nodes have a chassis but there is no Home, for example because each node has its own
	// databases.
	Interconnect bool
	names        []string
}

// ZonesOf counts the nodes per zone. Home requires more than half of the nodes, so that the zone that a single node
// writes to its own object does not decide for the others.
func ZonesOf(nodes []*Node) Zones {
	count, all := map[string]int{}, 0
	for _, n := range nodes {
		if n.Chassis != "" { // A node that is still joining does not count.
			count[n.zone()]++
			all++
		}
	}
	z := Zones{names: slices.Sorted(maps.Keys(count))}
	for name, n := range count {
		if 2*n > all {
			z.Home = name
		}
	}
	z.Interconnect = all > 0 && z.Home == ""
	return z
}

func (n *Node) zone() string { return cmp.Or(n.Zone, globalZone) }

// Reaches reports whether the databases of the home zone configure a node.
func (z *Zones) Reaches(n *Node) bool { return n.zone() == z.Home }

// String returns the names of some of the zones that nodes report.
func (z *Zones) String() string {
	const most = 3
	text := strings.Join(z.names[:min(most, len(z.names))], ", ")
	if more := len(z.names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
