// SPDX-License-Identifier: Apache-2.0

// Package bgp decides which BGP sessions one node keeps and what it tells in each, and
// knows no socket: package speaker keeps the sessions.
//
// What stays true:
//   - A Layout is a function of one snapshot, whatever the order of its slices. Node and
//     controller make the same one; a node knows no other node.
//   - Only addresses are told that the status of a Service shows and we gave, or that it lists
//     itself and its pool grants it.
//   - Of objects that contradict each other the oldest counts, and the others say so.
//   - A peer hears exactly the routes of its own Session: nothing is filtered on the way.
//   - Each route has its next hop written out; a speaker never chooses one.
//   - Two Neighbors that are not Alike need a new session; two sets of Routes that differ are a
//     matter of updates in the session that is there.
package bgp
