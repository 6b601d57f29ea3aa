// SPDX-License-Identifier: Apache-2.0

// Package rows turns the fabric and the plans of Services into the exact rows of OVN's
// northbound database that make them true: the router topology, one distributed router
// with one gateway port a shard.
//
// Invariants:
//   - Rows are a function of the fabric, the plans and Facts; no clock, no I/O.
//   - Every row names its owner in external_ids (k8s.ovn.org/owner-controller and
//     primary-id) and never carries k8s.ovn.org/kind, network or role, so that
//     OVN-Kubernetes neither adopts nor deletes it. No name starts with ext_, GR_ or
//     exgw-ext_ or has the form <bridge>_<node>; switches have no other_config;
//     no route sets ecmp_symmetric_reply.
//   - A shard without an anchor has no rows; a domain without such a shard has none.
//   - A shard keeps its MAC addresses for ever, its join addresses as long as its
//     router exists, and a backend keeps its slot as long as it lives.
package rows
