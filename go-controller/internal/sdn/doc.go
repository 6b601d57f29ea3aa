// SPDX-License-Identifier: Apache-2.0

// Package sdn decides which node's kernel holds which address in clusters that use OpenShift SDN. The shards are
// those of package place, and an annotation assigns addresses to each node.
//
// Invariants:
//   - An address of a plan is assigned to at most one node.
//   - The annotations are the state. An existing assignment remains as long as its gateway does.
//   - A kubelet can write the annotation of its own Node. Of several nodes that list addresses of a shard, the statuses
//     of L2Domains decide which is its active gateway, and generations decide nothing.
//   - An address that moves is released by the old node in one step before it is assigned to the new node.
//   - An annotation that can't be parsed is reported with its value, and assigns nothing.
package sdn
