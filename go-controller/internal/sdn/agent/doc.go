// SPDX-License-Identifier: Apache-2.0

// Package agent obeys, on a node of an OpenShift SDN cluster, the annotation of its own Node: the
// addresses in it are added to the node's interfaces and told to the segment, and all else of
// ours is removed. kube-proxy does what follows.
//
// Invariants:
//   - An address that is not ours, by the marks that it carries, is never touched.
//   - Addresses live for lifetime and are renewed: the kernel of a node whose agent is gone
//     gives them up by itself.
//   - What is to go goes before anything comes, and what is done is told only when it is done.
//   - An annotation that can't be read changes nothing.
//   - Until the Node is read, what the kernel holds of ours is kept, as long as the controller gets answers.
//   - Nothing of ours is left when the agent has ended and the controller knows. If it does not, addresses are left to
//     their lifetime.
package agent
