// SPDX-License-Identifier: Apache-2.0

// Package speaker runs the BGP sessions of one node with gobgp. Each peer has its own gobgp server, so that a peer
// receives exactly the routes of its own session and no export policy is needed.
//
// Invariants:
//   - Sessions are only opened by dialing. The only listener is for gobgp, on a loopback address, for a second or two.
//   - Routes from a peer are neither installed nor parsed.
//   - gobgp receives a message from a router only if the filter has found it well formed and allowed in the state of
//     the session. Some other messages make gobgp end the process.
//   - We end a session only if its Neighbor changes or is removed, if the session is Leaving, or if BFD detects that
//     the path failed. Every other change is an UPDATE of the routes that differ. If no route differs, nothing is sent.
//   - Run does not close the sessions when it ends. When the process exits, a peer with graceful restart keeps our
//     routes, and receives all of them in the next session before its End-of-RIB (RFC 4724).
//   - Sessions that end soon after they were Established are opened ever more seldom and count as down, until one has
//     lasted (damping).
//   - BFD monitors a peer from the first time that its session is Established until the peer is not wanted any more.
//     While the path is down, the peer is dialed every second, and at once when BFD is up again. If there is no session
//     for 5 s, BFD starts before the session, because a router in strict mode holds BGP until BFD is up.
//
// How a session is opened: a gobgp server is started. It dials a listener that accepts only connections from this
// process (listener). Meanwhile, the router is dialed (dial) and attached to the session when it has accepted the
// connection. Messages are then passed in both directions (connection), those from the router through a state machine
// without I/O (filter). If a session is lost, the server is stopped and a new session is opened, as after a restart.
//
// Workarounds for gobgp v3.37.0:
//   - gobgp panics in its own goroutines on a message of an unknown type, on an OPEN in an existing session and on
//     malformed attributes (osrg/gobgp issues 3325, 3392; fixed only in v4).
//   - Serve never returns, so a stopped server is kept for the next session.
//   - StartBgp writes variables that all servers read, so no other server may work at that time (startupLock).
//   - StopBgp resets the configuration from which a state machine makes its OPEN, without a lock, so the state machine
//     is stopped before (settle).
//   - The import policy is also applied to our own routes.
//   - gobgp waits 5 s after a session is lost, and its next OPEN does not indicate that routes were kept. Therefore a
//     lost session is stopped and opened again.
//   - gobgp dials after 1-2 s, so it is started before the router is connected. It gives up 4 min after its OPEN, so it
//     is restarted before that.
//   - gobgp does not know extended optional parameters (RFC 9072), and its ListPeer panics on a host name (FQDN
//     capability) or software version that is no UTF-8. So the filter rebuilds the OPEN from the capabilities that
//     gobgp needs (standardOpen).
//   - A hold time of 0 would leave gobgp no time for a write, so gobgp gets another one. The connection manages the
//     hold time and the KEEPALIVEs.
package speaker
