// SPDX-License-Identifier: Apache-2.0

// Package speaker keeps the BGP sessions of one node, with gobgp: one gobgp server a peer, so
// that a peer hears exactly the routes of its own session and no export policy is ever needed.
//
// What stays true:
//   - We only dial; nothing listens but a door for gobgp, on the host itself, for a second or two.
//   - Nothing that a peer tells is taken over, or even read.
//   - gobgp sees no byte of a router that the filter did not find well formed and due: it ends the
//     process at some of what is not.
//   - We end a session only if its Neighbor changes, goes or leaves, or if BFD sees the path fail. All else is
//     an UPDATE of the routes that differ, and no difference sends nothing.
//   - The end of Run closes no session: when the process exits, a peer with graceful restart
//     keeps our routes, and finds all of them again in the next session before its
//     End-of-RIB (RFC 4724).
//   - BFD watches a peer from the first time that its session is Established until the peer is not wanted any
//     more: while the path is away the peer is dialled every second, and at once when BFD is up again. Where
//     there is no session for 5 s it begins before, as a router in strict mode holds BGP until BFD is up.
//
// The way of a session: a gobgp server is started, which dials a door that lets in this process only (door).
// The router is dialled meanwhile (dial), and attached to the session when it has taken the connection. What both
// say is passed on (line), the router's words through a state machine without I/O (filter). A session that is
// lost is stopped and opened anew, as after a restart.
//
// What gobgp v3.37.0 makes necessary:
//   - It panics in goroutines of its own at a message of an unknown type, at an OPEN in a session
//     and at malformed attributes (osrg/gobgp issues 3325, 3392; mended in v4 only).
//   - Serve never returns, so a server that stopped is kept for the next session.
//   - StartBgp writes variables that all servers read, so no other one works meanwhile (gate).
//   - The import policy is asked about our own routes too.
//   - It waits 5 s after a session is lost, and its next OPEN does not say that routes were
//     kept: that is why a session is opened anew.
//   - It dials after 1-2 s: that is why it is started before the router is there. It gives up 4 min
//     after its OPEN, and is started anew before that.
//   - A hold time of 0 leaves it no time for a write, so it hears of another one: hold time and KEEPALIVEs are the
//     line's.
package speaker
