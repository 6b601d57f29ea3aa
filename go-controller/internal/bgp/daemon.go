// SPDX-License-Identifier: Apache-2.0

package bgp

// NoReports is what is known of a cluster without a BGPNodeStatus.
const NoReports = "no node has reported a session, as with a flavour without BGP"

// NoReport is what is known of a node without a BGPNodeStatus, or without a session that it must have.
func NoReport(node string) string {
	return "node " + node + " has not reported a session: does its BGP daemon run (ovnkube-slb node --enable-bgp)?"
}

// Stopped is what is known of a node whose BGPNodeStatus has a stopTime.
func Stopped(node string) string { return "the BGP daemon of node " + node + " was stopped" }
