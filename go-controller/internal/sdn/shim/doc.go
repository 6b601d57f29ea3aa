// SPDX-License-Identifier: Apache-2.0

// Package shim applies plans in clusters that use OpenShift SDN. It assigns addresses to nodes by an annotation and
// checks the health of their agents.
//
// Invariants:
//   - Before an address is assigned to another node, the previous node is instructed to remove it and either has done
//     so or can't be reached. A gateway that is alive but does not respond to this is waited for until handoverTime has
//     passed.
//   - What a node lists in its annotation although it was not assigned to it keeps an address from its gateway for one
//     handoverTime per assignment, no matter how often the node lists it again. It never makes the node the active
//     gateway. What was assigned to a node before this controller started is known from the active gateways in the
//     statuses of L2Domains.
//   - An address is pending from the time at which it began to wait until its node has confirmed it.
//   - No call waits for a node. What nodes confirm is asked in the background, and a node that does not answer delays
//     only what it has to confirm. Until then a Service is pending.
//   - An address that a node has confirmed may fail later. Each health check shows whether what has failed has changed.
//     The node is then asked what it is, and nothing is concluded before it has answered.
//   - A gateway is active only after it has confirmed an address of the shard. While none has, it is the one before.
//   - Existing assignments are adopted: a new controller writes nothing.
//   - A gateway is lost when its kernel was silent three times in a row, or when its agent reports that it can't hold
//     addresses. If the kernel refuses connections, or accepts them and the agent does not answer, the gateway is lost
//     only after the time in which the kernel removes the addresses.
//   - A lost gateway is used again after it has answered three times in a row.
package shim
