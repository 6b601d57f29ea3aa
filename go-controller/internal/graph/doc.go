// SPDX-License-Identifier: Apache-2.0

// Package graph draws the layer 2 domains of a cluster, and its BGP, as SVG: the addresses of each shard, the shard,
// and its gateways; the addresses that nodes advertise, the nodes, and the peers. It has no effects and no clock. Equal
// objects have equal pictures.
package graph
