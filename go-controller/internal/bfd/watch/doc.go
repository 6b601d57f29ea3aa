// SPDX-License-Identifier: Apache-2.0

// Package watch keeps sessions of package bfd with real peers: single-hop (RFC 5881) and
// multihop (RFC 5883), IPv4 and IPv6.
//
// What stays true:
//   - One goroutine, Run's, does all that is done with sockets. Watch and Leave say what is
//     wanted, and return at once.
//   - What has come is read before anything is missed, so that a process that stood still does
//     not take its own pause for the peer's.
//   - A packet counts for a session only if it came from the peer's address, to the port of
//     the session's kind, by its interface if it has one, with the TTL that the kind wants, and
//     with the session's discriminator as soon as the peer knows that.
//   - Sockets are open while sessions need them, and are not shared: where another BFD daemon
//     has the port, the sessions say so and are tried again every second.
package watch
