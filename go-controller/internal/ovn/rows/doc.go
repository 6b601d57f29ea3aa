// SPDX-License-Identifier: Apache-2.0

// Package rows computes the rows of OVN's northbound database from the topology and the plans of Services. The router
// topology is one distributed router with one gateway port per shard.
//
// Invariants:
//   - Rows are a function of the topology, the plans and Facts. There is no clock and no I/O.
//   - Every row names its owner in external_ids (k8s.ovn.org/owner-controller and primary-id) and never has
//     k8s.ovn.org/kind, network or role, so that OVN-Kubernetes neither adopts nor deletes it. No name starts with
//     ext_, GR_ or exgw-ext_ or has the form <bridge>_<node>. Switches have no other_config. No route sets
//     ecmp_symmetric_reply.
//   - A shard without an anchor has no rows. A domain has rows only if it has a resident or a shard with an anchor.
//   - A shard keeps its MAC addresses indefinitely and its join addresses as long as its router exists. A backend
//     keeps its slot as long as it exists.
package rows
