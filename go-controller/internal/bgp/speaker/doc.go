// SPDX-License-Identifier: Apache-2.0

// Package speaker keeps the BGP sessions of one node, with gobgp: one gobgp server a peer, so
// that a peer hears exactly the routes of its own session and no export policy is ever needed.
//
// What stays true:
//   - We only dial; nothing listens.
//   - Nothing that a peer tells is taken over.
//   - A session ends only if its Neighbor changes, goes or leaves. All else is an UPDATE of the
//     routes that differ, and no difference sends nothing.
//   - The end of Run closes no session: when the process exits, a peer with graceful restart
//     keeps our routes, and finds all of them again in the next session before its
//     End-of-RIB (RFC 4724).
//   - BFD watches a peer only while its session is Established: a router brings BGP down when
//     BFD is not up in time.
//
// What gobgp v3.37.0 makes necessary:
//   - Serve never returns, so a server that stopped is kept for the next session.
//   - StartBgp writes variables that all servers read, so no other one works meanwhile (gate).
//   - The import policy is asked about our own routes too.
//   - It waits 5 s after a session is lost, and its next OPEN does not say that routes were
//     kept. A lost session is therefore stopped and opened anew, as after a restart.
//   - Why a connection failed is only in its log.
//   - It cannot hold an unknown AS number against a peer, so that is looked at here.
//   - A peer that asks for hold time 0 is not kept: each write then has no time.
package speaker
