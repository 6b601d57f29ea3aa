// SPDX-License-Identifier: Apache-2.0

// Package place decides where addresses live: which shards a layer 2 domain has, which
// nodes may carry each shard and in which order, and which shard an address is in.
//
// Invariants:
//   - The address decides the shard: a rendezvous hash over the shards of its domain,
//     the same in every release. Nothing about the placement is stored anywhere.
//   - The gateways of a domain are each the first of about the same number of shards, and
//     the shards of one that fails go to different others.
//   - Who carries a shard now stays its first gateway while it may, unless the domain
//     says preempt: neither a restart of ours nor a gateway that returns moves anything.
//   - A gateway that drains stands behind those that don't, and one that reports a fault
//     behind both. Where all are alike nothing moves.
//   - A shard moves only if its gateway goes (with preempt: and few others), and to a
//     gateway that has at most one shard more than any other then.
//   - A shard more or less changes the shard of few addresses.
//   - No node is left out for what is not known of it.
package place
