// SPDX-License-Identifier: Apache-2.0

// Package world holds the facts that every decision is made from: pools, layer 2
// domains, nodes and Services of the cluster in our own value types, and what OVN
// says about who carries which shard.
//
// Invariants:
//   - A Snapshot and all that hangs on it is immutable once handed over; whoever
//     wants a different world builds another one.
//   - The order of the slices in a Snapshot means nothing. Decisions that need an
//     order make one from Created and the name.
//   - Nothing here knows Kubernetes types, OVN rows or a clock (the time is a fact like
//     others: Snapshot.Now); package kube/convert reads API objects into these types,
//     once, at the edge.
//   - Addresses are never IPv4 mapped into IPv6 and have no zone; prefixes are masked.
//   - An address family is data: IPv4 and IPv6 take the same path everywhere.
package world
