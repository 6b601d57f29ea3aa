// SPDX-License-Identifier: Apache-2.0

// Package agent keeps the BGP of one node: it reads the cluster, has package bgp decide
// which sessions and routes the node has, hands them to a speaker, and reports in the
// node's BGPNodeStatus.
//
// Invariants:
//   - A speaker hears nothing before all objects are read: what a session tells at first is
//     complete, and a restart withdraws nothing.
//   - What is handed over is always the whole; what is the same as before concerns no session.
//   - The status of the node is written by this process only, at most once a second, and
//     only if it says something else. Counters alone are written a few times a minute: each
//     Service changes those of all nodes. A peer that fails as before is nothing else.
//   - The end of the process closes no session, and ends BFD with them in one moment.
package agent
