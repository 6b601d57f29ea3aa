// SPDX-License-Identifier: Apache-2.0

// Package sdn decides which node's kernel holds which address where the cluster's network is
// OpenShift SDN: the shards are those of package place, and the nodes are told by an annotation.
//
// Invariants:
//   - At most one node is told to hold an address.
//   - What the nodes are told is the memory: from it follows who carries which shard, and what
//     is told already stays as long as its gateway does.
//   - An address that moves is given up by the one node in a step before another takes it.
//   - An annotation that can't be read is reported with the value in it, and tells nothing.
package sdn
