// SPDX-License-Identifier: Apache-2.0

// Package frrk8s computes the FRRConfigurations with which frr-k8s advertises our routes, and how they become what is
// there. It has no effects and no clock.
//
// Invariants:
//   - Objects are a function of the snapshot. They repeat nothing per node and Service: one object has the prefixes
//     that the same nodes advertise to the same peer, in buckets.
//   - On each node, all FRRConfigurations together pass the rules by which frr-k8s merges them (Merged), or the node is
//     in none of our objects: a single contradiction would freeze the node for all users of frr-k8s.
//   - A neighbor that an object of others defines for a node is repeated with exactly its session fields.
//   - Changes add before they remove, so that a prefix that moves between objects is not withdrawn. Only edits of
//     session fields remove first: frr-k8s admits no two objects that differ in them.
package frrk8s
