// SPDX-License-Identifier: Apache-2.0

// Package speaker runs the BGP sessions of one node, by a state machine of its own (ADR 22). They only send routes: a
// peer receives exactly the routes of its session. gobgp's package encodes capabilities and path attributes.
//
// Invariants:
//   - Sessions are only opened by dialing. There is no listener.
//   - Routes from a peer are neither installed nor parsed.
//   - A message from a router has an effect only if the filter has found it well formed and allowed in the state of the
//     session.
//   - We end a session only if its Neighbor changes or is removed, if the session is Leaving, if BFD detects that the
//     path failed, or if another speaker of the node wants it. Every other change sends the routes that differ. If no
//     route differs, nothing is sent.
//   - Another speaker of the node that has a session between the same addresses keeps it. One that does not have it yet
//     is refused by the router once at most.
//   - Run does not close the sessions when it ends. When the process exits, a peer with graceful restart keeps our
//     routes, and receives all of them in the next session before its End-of-RIB (RFC 4724).
//   - A router that reads slowly delays no other one, takes no more memory than its routes and a batch, and receives
//     the newest routes.
//   - Sessions that end soon after they were Established are opened ever more seldom and count as down, until one has
//     lasted (damping), whatever ended them.
//   - BFD monitors a peer from the first time that its session is Established until the peer is not wanted any more.
//     While the path is down, the peer is dialed every second, and at once when BFD is up again, unless it is damped.
//     If there is no session for 5 s, BFD starts before the session, because a router in strict mode holds BGP until
//     BFD is up.
//
// Each peer has a goroutine that compares what is wanted with what is (peer). When the router has accepted a connection
// (dial), a session runs on it: one goroutine reads (receive) and checks messages by a state machine without I/O
// (filter), another one writes (send) what differs between the wanted routes and those that the router has (adjOut).
package speaker
