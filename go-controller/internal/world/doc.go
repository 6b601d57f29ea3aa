// SPDX-License-Identifier: Apache-2.0

// Package world holds the facts that all decisions are based on. It represents the cluster's pools, layer 2 domains,
// nodes and Services as value types of this project, along with OVN's report of which chassis has claimed each shard.
//
// Invariants:
//   - A Snapshot and everything it references is immutable after it is handed over. To change the state, build a new
//     Snapshot. What Service.SelectorHash keeps follows from it.
//   - The order of the slices in a Snapshot has no meaning. Decisions that need an order derive it from Created and the
//     name.
//   - This package uses no Kubernetes types, no OVN rows and no clock. The time is an input like any other
//     (Snapshot.Now). Package kube/convert converts API objects to these types once, at the edge.
//   - Addresses are never IPv4-mapped IPv6 addresses and have no zone. Prefixes are masked.
//   - The address family is data: IPv4 and IPv6 share one code path everywhere.
package world
