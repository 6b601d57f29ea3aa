// SPDX-License-Identifier: Apache-2.0

// Package kubelet implements the agent of all lab nodes. It does what the scheduler and the kubelets do in a cluster,
// for Pods that are network namespaces. One responder listens on all container ports of a Pod; images are ignored.
//
// Invariants:
//   - Pods are served only on nodes with [NodeLabel]. Nodes that only a test created have no agent.
//   - Status reports Running only when the Pod's namespace is connected and its responder listens. It is written only
//     when it differs.
//   - A Pod is Ready when it runs, its Node is Ready, and annotation [ReadyAnnotation] is not "false".
//   - A deleted Pod keeps running, and its status is updated, until its preStop hook, which is a sleep or none, has
//     ended. Then it is killed.
//   - The record of a Pod's namespace and process is kept in a directory until both are gone. A restarted agent adopts
//     Pods that run, and removes those that were deleted in the meantime.
//   - An agent that stops leaves Pods unchanged.
package kubelet
