// SPDX-License-Identifier: Apache-2.0

// Package objects holds the API objects of a cluster as lists, and converts them to a snapshot for decisions outside of
// the controller (kubectl slb). It has no effects and no clock.
//
// The API server does not have all facts of the controller. What it lacks is taken from what the controller has written
// to statuses: the active gateways and the order of gateways from L2Domains, the nodes that are not attached to a
// network from their excludedNodes, the mode from conditions. The passwords of BGPPeers are not needed and not read.
package objects
