// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Zones says which nodes one northbound database configures.
type Zones struct {
	// Home is the zone of more than half of the nodes that tell theirs: the one whose databases are the cluster's. It is empty if
	// none tells its zone, or if there is no such zone.
	Home string
	// Interconnect: there is no such zone, as where each node has its own databases.
	Interconnect bool
	names        []string
}

// ZonesOf counts the nodes. It takes more than half of them, so that no single node decides for the others what it writes of itself.
func ZonesOf(nodes []*Node) Zones {
	count, told := map[string]int{}, 0
	for _, n := range nodes {
		if n.Zone != "" {
			count[n.Zone]++
			told++
		}
	}
	z := Zones{names: slices.Sorted(maps.Keys(count))}
	for name, n := range count {
		if 2*n > told {
			z.Home = name
		}
	}
	z.Interconnect = told > 0 && z.Home == ""
	return z
}

// Reaches tells whether the databases of the home zone configure a node. One that does not tell its zone is in it.
func (z *Zones) Reaches(n *Node) bool { return n.Zone == "" || n.Zone == z.Home }

// String names some of the zones that nodes tell.
func (z *Zones) String() string {
	const most = 3
	text := strings.Join(z.names[:min(most, len(z.names))], ", ")
	if more := len(z.names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
