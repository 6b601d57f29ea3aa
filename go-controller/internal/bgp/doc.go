// SPDX-License-Identifier: Apache-2.0

// Package bgp computes which BGP sessions a node has and which routes it advertises in each. It opens no sockets:
// package speaker runs the sessions.
//
// Invariants:
//   - A Layout is a function of one snapshot and does not depend on the order of its slices. Node and controller
//     compute the same Layout, although a node does not know the other nodes.
//   - An address is advertised only if the status of a Service shows it and we allocated it, or if the Service lists it
//     in spec.externalIPs and its pool grants it.
//   - If objects contradict each other, the oldest takes precedence, and the others report a finding.
//   - A peer receives exactly the routes of its own Session. Nothing is filtered afterwards.
//   - Every route names its next hop. A speaker never chooses one.
//   - Two Neighbors for which SameSession is false need a new session. A difference in Routes only needs updates in the
//     existing session.
package bgp
