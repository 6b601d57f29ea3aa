// SPDX-License-Identifier: Apache-2.0

// Package frrk8s computes the FRRConfigurations with which frr-k8s advertises our routes, and how they become what is
// there. It has no effects and no clock.
//
// Invariants:
//   - Objects are a function of the snapshot. Their names do not depend on which nodes and prefixes they have: one
//     object has the prefixes with the same advertisements for a bucket of nodes, or those of one node that depend on
//     endpoints. How many buckets there are depends on how many there were.
//   - An object is for at most one node of those with the same label kubernetes.io/hostname.
//   - On each node, all FRRConfigurations together pass the rules by which frr-k8s merges them (Merged), or nothing is
//     written for the node: a single contradiction would freeze it for all users of frr-k8s. If it is frozen by others
//     already, objects of ours that are there and need no change stay.
//   - Objects of others are converted when they change (frrapi.Converted) and merged once per decision and list of
//     objects (foreign), in time proportional to their size. Beyond the limits they are not read.
//   - A neighbor that an object of others defines for a node is repeated with exactly its session fields.
//   - Changes add before they remove, so that a prefix that moves between objects is not withdrawn. What contradicts a
//     desired object yields just before it: frr-k8s admits no two that differ in session fields or preferences.
package frrk8s
