// SPDX-License-Identifier: Apache-2.0

package world

import "cmp"

// ServingMode is how an L2Domain is served, as in its status. It is empty if the domain is not served and nothing of an
// earlier mode may be left.
type ServingMode string

// The modes in which an L2Domain can be served.
const (
	// ServedCentrally means that the controller programs the northbound database of the cluster.
	ServedCentrally ServingMode = "Central"
	// ServedByZones means that agents program the databases of their nodes, with interconnect.
	ServedByZones ServingMode = "Interconnect"
	// ServedByKernels means that the kernels of the nodes hold the addresses, with OpenShift SDN.
	ServedByKernels ServingMode = "OpenShiftSDN"
)

// ClaimedBy returns the names of the nodes with a zone of their own, other than central, that have claimed a shard of a
// domain according to their agents. The report of an agent that is silent counts: OVN keeps what the agent has
// programmed.
func ClaimedBy(nodes []*Node, domain, central string) []string {
	var names []string
	for _, n := range nodes {
		if n.Agent == nil || !n.HasOwnZone() || n.Zone == central {
			continue
		}
		for shard := range n.Agent.Claims {
			if shard.Domain == domain {
				names = append(names, n.Name)
				break
			}
		}
	}
	return names
}

// AnyFault returns what prevents the node from serving one of its physical networks, or else all of them. It is the
// zero value if there is no fault.
func (n *Node) AnyFault() Fault {
	first := ""
	for network := range n.Faults {
		if network != EveryNetwork && (first == "" || network < first) {
			first = network
		}
	}
	return n.Faults[cmp.Or(first, EveryNetwork)]
}
