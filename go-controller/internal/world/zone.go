// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// globalZone is the zone of a node of which OVN-Kubernetes does not say otherwise.
const globalZone = "global"

// Zones says which nodes one northbound database configures.
type Zones struct {
	// Home is the zone of more than half of the nodes that OVN knows: the one whose databases are the cluster's. It is
	// empty if there is no such zone.
	Home string
	// Interconnect: there is no such zone, as where each node has its own databases.
	Interconnect bool
	names        []string
}

// ZonesOf counts the nodes. It takes more than half of them, so that no single node decides for the others what it
// writes of itself.
func ZonesOf(nodes []*Node) Zones {
	count, all := map[string]int{}, 0
	for _, n := range nodes {
		if n.Chassis != "" { // One that is only just joining has no say.
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

// String names some of the zones that nodes tell.
func (z *Zones) String() string {
	const most = 3
	text := strings.Join(z.names[:min(most, len(z.names))], ", ")
	if more := len(z.names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
