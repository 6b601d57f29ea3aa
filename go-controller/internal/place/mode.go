// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// An address must not be answered for in two modes at once: the chassis of the database of a cluster and those of zones
// know nothing of each other, and each would have an active gateway. While OVN-Kubernetes is moved from one mode to the
// other, a domain is therefore served in the new mode only when nothing of the old one can be left.

// maxNamed is the maximum number of nodes that a message names.
const maxNamed = 5

// serving returns the mode in which domains are served if they can be, and what it follows from.
func serving(c *world.Cluster, zones *world.Zones) (world.ServingMode, string) {
	switch {
	case c.OpenShiftSDN:
		return world.ServedByKernels, "the cluster network is OpenShiftSDN"
	case zones.Interconnect:
		return world.ServedByZones, fmt.Sprintf("%s zones of their own in OVN-Kubernetes (k8s.ovn.org/zone-name, or "+
			"k8s.ovn.org/node-transit-switch-port-ifaddr without it), each with its own databases",
			ofAll(zones.InOwn, zones.Nodes, "has", "have"))
	case zones.Nodes == 0:
		return world.ServedCentrally, "no node has a chassis yet"
	}
	return world.ServedCentrally, fmt.Sprintf("%s in zone %q of OVN-Kubernetes (k8s.ovn.org/zone-name), whose northbound "+
		"database --nb-address names", ofAll(zones.InCentral, zones.Nodes, "is", "are"), zones.Central)
}

// ofAll returns text such as "2 of 3 nodes are".
func ofAll(n, all int, one, many string) string {
	if all == 1 {
		return "the only node " + one
	}
	if n == all {
		return fmt.Sprintf("all %d nodes %s", all, many)
	}
	return fmt.Sprintf("%d of %d nodes %s", n, all, many)
}

// bridgesText returns which bridges of the members the domain is on, and how they relate to OVN-Kubernetes' own
// gateway; empty if no bridge is known.
func (d *Domain) bridgesText(members []*world.Node, w *world.Snapshot) string {
	count := map[string]int{}
	for _, n := range members {
		bridges, _ := bridgesOf(n, w)
		bridge := bridges[d.Spec.PhysicalNetwork]
		switch {
		case bridge == "":
			continue
		case bridge != n.GatewayBridge:
			bridge += ", which OVN-Kubernetes' own gateway does not use,"
		case n.SharedGateway:
			bridge += " of OVN-Kubernetes' own gateway (mode shared)"
		default:
			bridge += " of OVN-Kubernetes' own gateway (mode local)"
		}
		count[bridge]++
	}
	var parts []string
	for _, bridge := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s on %s", bridge, world.Count(count[bridge], "node")))
	}
	if more := len(parts) - maxNamed; more > 0 {
		parts = append(parts[:maxNamed], fmt.Sprintf("%d more", more))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("physical network %q is bridge %s", d.Spec.PhysicalNetwork, strings.Join(parts, ", "))
}

// otherMode returns why the domain can't be served because gateways of another mode may still answer for its addresses,
// or an empty string. central is the zone whose database the controller programs: it takes over all rows there.
func (d *Domain) otherMode(mode world.ServingMode, central string, w *world.Snapshot) string {
	switch {
	case mode == world.ServedByZones && d.Spec.Served == world.ServedCentrally:
		// No process can tell whether that database still has the rows. A chassis has them only if it uses the database.
		var left []string
		for _, n := range w.Nodes {
			if n.Chassis != "" && !n.HasOwnZone() {
				left = append(left, n.Name)
			}
		}
		if len(left) > 0 {
			return fmt.Sprintf("OVN-Kubernetes is being moved to interconnect, and a controller with --nb-address has not "+
				"removed its rows (status.mode: Central): gateways among the nodes without a zone of their own "+
				"(k8s.ovn.org/zone-name) may still answer: %s; run that controller until it has, or move these nodes", named(left))
		}
	case mode == world.ServedCentrally && d.Spec.Served == world.ServedByZones:
		if left := world.ClaimedBy(w.Nodes, d.Spec.Name, central); len(left) > 0 {
			return fmt.Sprintf("OVN-Kubernetes is being moved from interconnect, and agents of nodes with a zone of their own "+
				"(k8s.ovn.org/zone-name) have not removed their rows (status.mode: Interconnect): %s; the agents do so as soon "+
				"as they run (ovnkube-slb node --enable-l2)", named(left))
		}
	}
	return ""
}

// named returns as many names as fit into a condition.
func named(names []string) string {
	slices.Sort(names)
	return world.Some(names, maxNamed)
}
