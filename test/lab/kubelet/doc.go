// SPDX-License-Identifier: Apache-2.0

// Package kubelet is the agent of all the lab's nodes: what scheduler and kubelets do in a cluster, for Pods that are network namespaces.
// A Pod's containers are one responder that listens on all their ports; images are not looked at.
//
// Invariants:
//   - A Pod is served on a node that has [NodeLabel] and no other: Nodes made up by a test have no agent.
//   - Status says Running only when the Pod's namespace is connected and its responder listens; it is written only when it differs.
//   - A Pod is Ready when it runs, its Node is Ready, and annotation [ReadyAnnotation] does not say "false".
//   - A Pod that is deleted runs on, and its status is written, until its preStop hook is over, which is a sleep or none. Then it is killed.
//   - What is known of a Pod's namespace and process is kept in a directory until both are gone. An agent that is started again adopts
//     what runs, and removes what belongs to Pods that were deleted in the meantime.
//   - An agent that ends leaves Pods as they are.
package kubelet
