// SPDX-License-Identifier: Apache-2.0

// Package speaker keeps the BGP sessions of one node, with gobgp: one gobgp server a peer, so
// that a peer hears exactly the routes of its own session and no export policy is ever needed.
//
// What stays true:
//   - We only dial; nothing listens but a door for gobgp, on the host itself, for a second or two.
//   - Nothing that a peer tells is taken over, or even read.
//   - gobgp sees no byte of a router that the filter did not find well formed and due: it ends the
//     process at some of what is not.
//   - A session ends only if its Neighbor changes, goes or leaves. All else is an UPDATE of the
//     routes that differ, and no difference sends nothing.
//   - The end of Run closes no session: when the process exits, a peer with graceful restart
//     keeps our routes, and finds all of them again in the next session before its
//     End-of-RIB (RFC 4724).
//   - BFD watches a peer only while its session is Established: a router brings BGP down when
//     BFD is not up in time.
//
// The way of a session: the router is dialled here (dial), and a gobgp server is started when it has
// taken the connection. gobgp dials a door that lets in nobody but this process (door), and what
// both say is passed on (line), the router's words through a state machine without I/O (filter).
// A session that is lost is stopped and opened anew, as after a restart.
//
// What gobgp v3.37.0 makes necessary:
//   - It panics in goroutines of its own at a message of an unknown type, at an OPEN in a session
//     and at malformed attributes (osrg/gobgp issues 3325, 3392; mended in v4 only).
//   - Serve never returns, so a server that stopped is kept for the next session.
//   - StartBgp writes variables that all servers read, so no other one works meanwhile (gate).
//   - The import policy is asked about our own routes too.
//   - It waits 5 s after a session is lost, and its next OPEN does not say that routes were
//     kept: that is why a session is opened anew.
//   - It dials after 1-2 s, so that is how long a router waits for our OPEN.
//   - A peer that asks for hold time 0 is refused: each write then has no time.
package speaker
