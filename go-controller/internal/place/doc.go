// SPDX-License-Identifier: Apache-2.0

// Package place decides the placement of addresses: which shards a layer 2 domain has, which nodes may be gateways of
// each shard and in which order, and which shard an address is in.
//
// Invariants:
//   - The address determines the shard: a rendezvous hash over the shards of its domain, the same in every release.
//     Each pass computes it again. The order of a shard's gateways also depends on its current gateway, which is read
//     from OVN (world.Snapshot.ShardStates).
//   - Each gateway of a domain is the first of about the same number of shards. The shards of a gateway that fails
//     move to different other gateways.
//   - The current gateway of a shard stays the first one as long as it is eligible, unless the domain sets preempt:
//     neither a restart of the controller nor a gateway that returns moves anything.
//   - Of equally fit gateways, the most preferred ones (gateways.preferred) precede the others, except the current one
//     without preempt. What is said of all gateways here then holds for those that are equally preferred.
//   - A draining gateway comes after those that don't drain, one whose agent is silent after both, and one that reports
//     a fault last. If all gateways have the same state, nothing moves. With OpenShift SDN, a gateway without an
//     address in the subnets of one family comes after those that have one in each, and before those that drain.
//   - A gateway that serves and whose agent is silent keeps its shards, also if it drains, or if the domain no longer
//     selects it: it would not learn of a move, and two gateways would answer.
//   - A gateway that was the first one of a shard and has not claimed it comes after those that have not failed to.
//   - A shard moves only on request, or if its gateway is removed (with preempt, few others move too), and then to a
//     gateway that has at most one shard more than any other afterwards.
//   - A request moves its shards once. It is over when they have moved, or can't or did not in time.
//   - Adding or removing a shard changes the shard of few addresses.
//   - No node is excluded because of unknown facts, except with OpenShift SDN, where such a node would hold no address.
package place
