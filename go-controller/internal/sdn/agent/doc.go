// SPDX-License-Identifier: Apache-2.0

// Package agent applies, on a node of an OpenShift SDN cluster, the annotation of the agent's own Node. It adds the
// addresses in the annotation to the node's interfaces, announces them on the segment, and removes all other
// addresses that agents have added. kube-proxy handles the traffic to them.
//
// Invariants:
//   - An address without our marks is never changed.
//   - Addresses are valid for lifetime and are renewed. If a node's agent is gone, the kernel removes them.
//   - Addresses are removed before others are added, and a change is reported only after it has been made.
//   - An annotation that can't be parsed changes nothing.
//   - Until the Node has been read, our addresses in the kernel are kept, as long as the controller's health checks
//     are answered.
//   - No address of ours is left after the agent has ended, provided that the controller was informed. Otherwise
//     addresses remain until their lifetime expires.
package agent
