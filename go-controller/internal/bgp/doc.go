// SPDX-License-Identifier: Apache-2.0

// Package bgp decides which BGP sessions one node keeps and what it tells in each, and
// knows no socket: package speaker keeps the sessions.
//
// What stays true:
//   - A peer hears exactly the routes of its own Session: nothing is filtered on the way.
//   - Each route has its next hop written out; a speaker never chooses one.
//   - Two Neighbors that differ need a new session; two sets of Routes that differ are a
//     matter of updates in the session that is there.
package bgp
